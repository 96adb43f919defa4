package http1

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestClientGoesWhileWaiting: the wait ends, before the head and in the body, whether or not a body is being sent.
func TestClientGoesWhileWaiting(t *testing.T) {
	for name, tc := range map[string]struct {
		says string
		body forward.Source
	}{
		"head":               {"", nil},
		"body":               {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12", nil},
		"chunks":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n12\r\n", nil},
		"head with a body":   {"", &stuck{reading: make(chan struct{})}},
		"in an early answer": {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12", &stuck{reading: make(chan struct{})}},
	} {
		t.Run(name, func(t *testing.T) {
			said := make(chan struct{})
			addr := listen(t, func(c net.Conn) {
				readRequest(c)
				_, _ = io.WriteString(c, tc.says)
				close(said)
				_, _ = io.Copy(io.Discard, c)
			})
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			ctx, cancel := context.WithCancel(t.Context())
			b := ps.Open(ctx, p, false)
			r := get()
			if tc.body != nil {
				r = post(tc.body, 1000)
			}
			go func() { <-said; time.Sleep(2 * patience); cancel() }()
			began := time.Now()
			_, _, err := exchanged(b, r)
			if err == nil {
				var got []byte
				if got, err = io.ReadAll(readerOf{b.Body()}); string(got) != "12" {
					t.Errorf("%q", got)
				}
			}
			if classOf(t, err) != forward.OnError || time.Since(began) > 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			b.Close()
			if n := p.Link.(*Pool).open(); n != 0 {
				t.Errorf("%d connections are left", n)
			}
		})
	}
}

// TestEndedClientSendsNothing: not even a connection is made.
func TestEndedClientSendsNothing(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: numbered(t)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := ps.Open(ctx, p, false)
	defer b.Close()
	if _, _, err := exchanged(b, get()); classOf(t, err) != forward.OnError || b.Sent().Connected {
		t.Errorf("%v, %+v", err, b.Sent())
	}
}

// TestSlowAnswerKeepsItsConnection: that the client's end was looked for leaves nothing behind.
func TestSlowAnswerKeepsItsConnection(t *testing.T) {
	addr := listen(t, func(c net.Conn) {
		for readRequest(c) != "" {
			time.Sleep(2 * patience)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	for i := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		b := ps.Open(ctx, p, false)
		if _, _, err := exchanged(b, get()); err != nil || b.Sent().Kept != (i > 0) {
			t.Fatalf("%d: %v, %+v", i, err, b.Sent())
		}
		if got, err := io.ReadAll(readerOf{b.Body()}); string(got) != "ok" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		b.Close()
		cancel()
	}
}

// TestAnswersThatAreLeft keep their connection when the rest is at hand and not too much.
func TestAnswersThatAreLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		kept   bool
	}{
		"short":            {"HTTP/1.1 404 X\r\nContent-Length: 5\r\n\r\nhello", true},
		"chunked":          {"HTTP/1.1 404 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", true},
		"larger":           {"HTTP/1.1 404 X\r\nContent-Length: 40000\r\n\r\n" + strings.Repeat("x", 40000), true},
		"too large":        {"HTTP/1.1 404 X\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000), false},
		"endless":          {"HTTP/1.1 404 X\r\n\r\nhello", false},
		"still to come":    {"HTTP/1.1 404 X\r\nContent-Length: 6\r\n\r\nhello", false},
		"chunks to come":   {"HTTP/1.1 404 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", false},
		"too large chunks": {"HTTP/1.1 404 X\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n" + strings.Repeat("x", 100000) + "\r\n0\r\n\r\n", false},
		"bad chunks":       {"HTTP/1.1 404 X\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nhello\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			said := make(chan struct{})
			addr := listen(t, func(c net.Conn) {
				readRequest(c)
				_, _ = io.WriteString(c, tc.answer)
				close(said)
				_, _ = io.Copy(io.Discard, c)
			})
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			b := ps.Open(t.Context(), p, false)
			if status, _, err := exchanged(b, get()); status != 404 || err != nil {
				t.Fatal(status, err)
			}
			if tc.kept {
				<-said
			}
			b.Close()
			b.Close()
			if n := p.Link.(*Pool).shelf.count; (n == 1) != tc.kept {
				t.Errorf("%d connections are kept", n)
			}
		})
	}
}

func TestTunnelKeepsWhatCameEarly(t *testing.T) {
	addr := listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly ")
		_, _ = io.Copy(c, c)
	})
	ps := NewPools(Settings{Read: 50 * time.Millisecond}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	b := ps.Open(t.Context(), p, false)
	r := get()
	r.Fields = fields("Connection", "Upgrade", "Upgrade", "echo")
	status, got, err := exchanged(b, r)
	if status != 101 || string(forward.Get(got, "upgrade")) != "echo" || err != nil {
		t.Fatal(status, err)
	}
	rw, err := b.Tunnel()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(100 * time.Millisecond) // longer than the limit of answers
		_, _ = io.WriteString(rw, "late")
	}()
	buf := make([]byte, len("early late"))
	if _, err := io.ReadFull(rw, buf); err != nil || string(buf) != "early late" {
		t.Errorf("%q, %v", buf, err)
	}
	_ = rw.Close()
	b.Close()
	if n := p.Link.(*Pool).open(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

// TestReleasedAttemptIsDead until it is opened again.
func TestReleasedAttemptIsDead(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: numbered(t)})
	b := ps.Open(t.Context(), p, false).(*attempt)
	if _, _, err := exchanged(b, get()); err != nil {
		t.Fatal(err)
	}
	b.Release()
	if b.conn != nil || b.failed == nil || b.inBuf != nil || p.Link.(*Pool).shelf.count != 1 {
		t.Errorf("%+v", b)
	}
}

// TestGetAllocatesNothing on a kept connection.
func TestGetAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes sync.Pool forget at random")
	}
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\n\r\nok")
	addr := listen(t, func(c net.Conn) {
		buf := make([]byte, 1024)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			_, _ = c.Write(answer)
		}
	})
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	buf, r := make([]byte, 100), get()
	if n := testing.AllocsPerRun(200, func() {
		b := ps.Open(ctx, p, false)
		err := b.Send(r)
		if err == nil {
			_, _, err = b.Head()
		}
		if n, end := b.Body().Read(buf); err != nil || n != 2 || end != io.EOF {
			t.Error(n, end, err)
		}
		b.Close()
		b.(*attempt).Release()
	}); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestMoreThanTheChunks: what follows the last chunk in the same read costs the connection.
func TestMoreThanTheChunks(t *testing.T) {
	for more, kept := range map[string]bool{"": true, "HTTP/1.1 200 OK\r\n\r\n": false} {
		headed := make(chan struct{})
		addr := listen(t, func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			<-headed
			_, _ = io.WriteString(c, "5\r\nhello\r\n0\r\n\r\n"+more)
			_, _ = io.Copy(io.Discard, c)
		})
		ps := NewPools(Settings{}, nil)
		p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
		b := held(t, ps, p)
		close(headed)
		got, err := io.ReadAll(readerOf{b.Body()})
		b.Close()
		if n := p.Link.(*Pool).shelf.count; string(got) != "hello" || err != nil || (n == 1) != kept {
			t.Errorf("%q, %v, %d connections are kept after %q", got, err, n, more)
		}
		ps.Close()
	}
}
