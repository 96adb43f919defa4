package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

const short = 40 * time.Millisecond

// drip sends text byte by byte until the connection ends, and reports whether it ended before all was sent.
func drip(c net.Conn, text string) bool {
	for i := range len(text) {
		if _, err := c.Write([]byte(text[i : i+1])); err != nil {
			return true
		}
		time.Sleep(short / 8)
	}
	return false
}

// TestSlowHeads: a head has to come whole in time, however its bytes come; nothing is said to who is too slow.
func TestSlowHeads(t *testing.T) {
	for name, first := range map[string]string{"nothing": "", "empty lines": "\r\n", "half a line": "GET /", "half a head": "GET / HTTP/1.1\r\nA: "} {
		srv, addr := serve(t, Settings{ClientHeader: short, ClientIdle: time.Hour}, plain)
		c := dial(t, addr)
		began := time.Now()
		say(t, c, first)
		if name != "nothing" {
			go drip(c, strings.Repeat("a", 1000))
		}
		if got, _ := io.ReadAll(c); len(got) > 0 || time.Since(began) < short || time.Since(began) > 5*time.Second {
			t.Errorf("%s: %q after %v", name, got, time.Since(began))
		}
		eventually(t, "it is gone", func() bool { return srv.Stats().Active == 0 })
	}
}

// TestIdleConnections are closed in time, and not before.
func TestIdleConnections(t *testing.T) {
	_, addr := serve(t, Settings{ClientHeader: time.Hour, ClientIdle: short}, plain)
	c := dial(t, addr)
	time.Sleep(3 * short) // the first request has the time of a head
	say(t, c, get)
	hear(t, c, "GET /\n")
	began := time.Now()
	if got := gone(t, c); got != "" || time.Since(began) < short {
		t.Errorf("%q after %v", got, time.Since(began))
	}
}

// TestSlowBodies: each byte starts the time anew; without one the reader gets an error.
func TestSlowBodies(t *testing.T) {
	ended := make(chan error, 1)
	_, addr := serve(t, Settings{ClientBody: short}, func(_ context.Context, r *forward.Request, c forward.Client) {
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
		forward.Plain(c, r, 400, "too slow")
	})
	const head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n"
	c := dial(t, addr)
	say(t, c, head)
	drip(c, strings.Repeat("a", 20)) // takes 100 ms
	if err := <-ended; err != nil {
		t.Errorf("slow, but not too slow: %v", err)
	}
	hear(t, c, "too slow\n")
	say(t, c, head+"abc")
	if err := <-ended; !errors.Is(err, errLate) {
		t.Errorf("%v", err)
	}
	if got := gone(t, c); headerOf(got, "Connection") != "close" {
		t.Errorf("%q", got)
	}
}

// TestSlowReaders: a client that takes nothing is cut off in time, on the plain path and on that of a splice.
func TestSlowReaders(t *testing.T) {
	for _, spliced := range []bool{false, true} {
		ended := make(chan error, 1)
		srv, addr := serve(t, Settings{ClientSend: 100 * time.Millisecond}, func(_ context.Context, _ *forward.Request, c forward.Client) {
			const size = 1 << 30
			_ = c.Head(200, nil, size)
			piece := make([]byte, 1<<20)
			var err error
			if spliced {
				socket, ok := c.(forward.Splicer).Socket()
				if !ok {
					t.Error("no socket")
				}
				for err == nil {
					var n int
					n, err = socket.Write(piece)
					if told := c.(forward.Splicer).Sent(int64(n), err); told != nil {
						err = told
					}
				}
			}
			for err == nil {
				err = c.Write(piece)
			}
			ended <- err
		})
		c := dial(t, addr)
		say(t, c, get)
		if err := <-ended; err == nil {
			t.Error("all was taken")
		}
		eventually(t, "it is gone", func() bool { return srv.Stats().Active == 0 })
		_ = c
	}
}

// TestSlowButReading: a client that takes something now and then gets all, and a splice that has nothing to send waits for
// no client.
func TestSlowButReading(t *testing.T) {
	const size = 8 << 20
	_, addr := serve(t, Settings{ClientSend: 200 * time.Millisecond}, func(_ context.Context, r *forward.Request, c forward.Client) {
		_ = c.Head(200, nil, size)
		if string(r.Target) == "/spliced" {
			socket, _ := c.(forward.Splicer).Socket()
			n, err := socket.Write([]byte("abc"))
			_ = c.(forward.Splicer).Sent(int64(n), err)
			time.Sleep(600 * time.Millisecond)
			_ = c.Write(make([]byte, size-3))
		} else {
			_ = c.Write(make([]byte, size))
		}
		_ = c.End(nil)
	})
	for _, target := range []string{"/", "/spliced"} {
		c := dial(t, addr)
		_ = c.SetReadBuffer(64 << 10)
		say(t, c, "GET "+target+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		total := 0
		buf := make([]byte, 512<<10)
		for {
			n, err := c.Read(buf)
			total += n
			if err != nil {
				break
			}
			if target == "/" {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if total < size {
			t.Errorf("%s: %d bytes of %d", target, total, size)
		}
	}
}

// TestTunnelsThatAreSilent end in time; bytes either way keep them.
func TestTunnelsThatAreSilent(t *testing.T) {
	const idle = 100 * time.Millisecond
	ended := make(chan error, 1)
	_, addr := serve(t, Settings{TunnelIdle: idle}, func(_ context.Context, _ *forward.Request, c forward.Client) {
		_ = c.Head(http.StatusSwitchingProtocols, nil, 0)
		tunnel, err := c.Tunnel()
		if err != nil {
			t.Error(err)
			return
		}
		defer tunnel.Close()
		go func() {
			for range 6 {
				time.Sleep(idle / 2)
				_, _ = tunnel.Write([]byte("x"))
			}
		}()
		_, err = tunnel.Read(make([]byte, 1))
		ended <- err
	})
	c := dial(t, addr)
	began := time.Now()
	say(t, c, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n")
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, errLate) || time.Since(began) < 4*idle {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	gone(t, c)
}

// TestConnections: more than may be open at once are closed at once.
func TestConnections(t *testing.T) {
	for name, s := range map[string]Settings{"in all": {Conns: 2}, "of an address": {ConnsPerAddress: 2}} {
		srv, addr := serve(t, s, plain)
		a, b := dial(t, addr), dial(t, addr)
		say(t, a, get)
		say(t, b, get)
		hear(t, a, "GET /\n")
		hear(t, b, "GET /\n")
		if got, _ := io.ReadAll(dial(t, addr)); len(got) > 0 {
			t.Errorf("%s: the third got %q", name, got)
		}
		_ = a.Close()
		eventually(t, "there is room", func() bool { return srv.Stats().Active == 1 })
		c := dial(t, addr)
		say(t, c, get)
		hear(t, c, "GET /\n")
		if got := srv.Stats(); got.Accepts != 4 || got.Handled != 3 || got.Requests != 3 {
			t.Errorf("%s: %+v", name, got)
		}
		_ = c.Close()
		_ = b.Close()
		eventually(t, "nobody is counted", func() bool {
			srv.mu.Lock()
			defer srv.mu.Unlock()
			return len(srv.perClient) == 0 && len(srv.conns) == 0
		})
	}
}

// TestStats counts each connection where it is.
func TestStats(t *testing.T) {
	waits, let := make(chan struct{}), make(chan struct{})
	srv, addr := serve(t, Settings{}, func(_ context.Context, r *forward.Request, c forward.Client) {
		if string(r.Target) == "/waits" {
			waits <- struct{}{}
			<-let
		}
		plain(context.Background(), r, c)
	})
	silent, reading, writing, kept := dial(t, addr), dial(t, addr), dial(t, addr), dial(t, addr)
	say(t, kept, get)
	hear(t, kept, "GET /\n")
	say(t, writing, "GET /waits HTTP/1.1\r\nHost: a\r\n\r\n")
	<-waits
	say(t, reading, "GET / HT")
	want := Stats{Accepts: 4, Handled: 4, Requests: 2, Active: 4, Reading: 1, Writing: 1, Waiting: 2}
	var got Stats
	eventually(t, fmt.Sprintf("%+v", want), func() bool { got = srv.Stats(); return got == want })
	close(let)
	_ = silent
}
