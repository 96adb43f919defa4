package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

const asks = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"

// TestExpectation: the client is asked for its body when somebody wants to read it, or when a backend asked.
func TestExpectation(t *testing.T) {
	read := func(r *forward.Request, c forward.Client) {
		b, err := io.ReadAll(r.Body)
		forward.Plain(c, r, 200, fmt.Sprintf("%s %v", b, err))
	}
	for name, tc := range map[string]struct {
		h          handlerFunc
		asked      bool
		first, end string
	}{
		"read":        {func(_ context.Context, r *forward.Request, c forward.Client) { read(r, c) }, true, "HTTP/1.1 100 Continue\r\n\r\n", "abc <nil>\n"},
		"a backend's": {func(_ context.Context, r *forward.Request, c forward.Client) { _ = c.Inform(100, nil); read(r, c) }, true, "HTTP/1.1 100 Continue\r\n\r\n", "abc <nil>\n"},
		"a backend's late": {func(_ context.Context, r *forward.Request, c forward.Client) {
			b, _ := io.ReadAll(r.Body)
			_ = c.Inform(100, nil)
			forward.Plain(c, r, 200, string(b))
		}, true, "HTTP/1.1 100 Continue\r\n\r\n", "abc\n"},
		"refused": {func(_ context.Context, r *forward.Request, c forward.Client) { forward.Plain(c, r, 413, "no") }, false, "HTTP/1.1 413 ", "no\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, addr := serve(t, Settings{}, tc.h)
			c := dial(t, addr)
			say(t, c, asks)
			got := hear(t, c, "\r\n\r\n")
			if !strings.HasPrefix(got, tc.first) {
				t.Fatalf("first %q", got)
			}
			if !tc.asked { // it sends none, and the connection ends
				if rest := gone(t, c); !strings.HasSuffix(got+rest, tc.end) || headerOf(got, "Connection") != "close" {
					t.Errorf("%q", got+rest)
				}
				return
			}
			say(t, c, "abc"+get) // the next request is there at once
			got += hear(t, c, tc.end)
			if n := strings.Count(got, "100 Continue"); n != 1 {
				t.Errorf("asked %d times: %q", n, got)
			}
		})
	}
	t.Run("old clients expect nothing", func(t *testing.T) {
		got := talk(t, func(_ context.Context, r *forward.Request, c forward.Client) { read(r, c) },
			"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc")
		if strings.Contains(got, "100") && !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.Contains(got, "abc <nil>") {
			t.Errorf("%q", got)
		}
	})
}

// TestAnswerBeforeTheBodyEnds: the client gets it, learns that the connection takes no other request, and is not reset
// while it is still sending. What it sends is no request.
func TestAnswerBeforeTheBodyEnds(t *testing.T) {
	for name, head := range map[string]string{
		"by length": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\nabc",
		"in chunks": "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4c4b40\r\nabc",
	} {
		var requests atomic.Int32
		_, addr := serve(t, Settings{}, func(_ context.Context, r *forward.Request, c forward.Client) {
			requests.Add(1)
			_, _ = r.Body.Read(make([]byte, 1))
			forward.Plain(c, r, 413, "early")
		})
		c := dial(t, addr)
		say(t, c, head)
		for range 100 {
			if _, err := io.WriteString(c, strings.Repeat(get, 1000)); err != nil {
				t.Fatalf("%s: reset while sending: %v", name, err)
			}
		}
		if got := gone(t, c); !strings.HasPrefix(got, "HTTP/1.1 413 ") || headerOf(got, "Connection") != "close" || !strings.HasSuffix(got, "early\n") || requests.Load() != 1 {
			t.Errorf("%s: %d requests, %q", name, requests.Load(), got)
		}
	}
}

// TestBrokenBodies: the handler gets an error, and nothing behind such a body is taken for a request.
func TestBrokenBodies(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, rest := range []string{"x\r\n", "3\nabc", "3\r\nabcd\r\n", "3\r\nabc\n", "-1\r\n", " 3\r\nabc\r\n", "0\r\nA b\r\n\r\n", "3;\x00\r\n", "ffffffffffffffff\r\n", "0\r\n A: b\r\n\r\n"} {
		var requests atomic.Int32
		_, addr := serve(t, Settings{}, func(_ context.Context, r *forward.Request, c forward.Client) {
			if requests.Add(1); r.Body == nil {
				plain(context.Background(), r, c)
				return
			}
			if b, err := io.ReadAll(r.Body); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%q: read %q, %v", rest, b, err)
			}
			forward.Plain(c, r, 400, "broken")
		})
		c := dial(t, addr)
		say(t, c, head)
		time.Sleep(5 * time.Millisecond) // so that it is no part of the head's packet; either way is right
		say(t, c, rest+get)
		if got := gone(t, c); !strings.HasPrefix(got, "HTTP/1.1 400 ") || requests.Load() != 1 {
			t.Errorf("%q: %d requests, %q", rest, requests.Load(), got)
		}
	}
}

// TestHalfClose: a client that has nothing more to say gets its answer.
func TestHalfClose(t *testing.T) {
	for _, text := range []string{get, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", get + get} {
		_, addr := serve(t, Settings{}, func(ctx context.Context, r *forward.Request, c forward.Client) {
			time.Sleep(20 * time.Millisecond)
			forward.Plain(c, r, 200, "ok")
		})
		c := dial(t, addr)
		say(t, c, text)
		_ = c.CloseWrite()
		if got := gone(t, c); strings.Count(got, "ok\n") != strings.Count(text, "HTTP/1.1") {
			t.Errorf("%q", got)
		}
	}
}

// TestTunnel: bytes go both ways, those that came with the request first; half of it can end.
func TestTunnel(t *testing.T) {
	const upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
	srv, addr := serve(t, Settings{}, func(_ context.Context, r *forward.Request, c forward.Client) {
		_ = c.Head(http.StatusSwitchingProtocols, []forward.Field{field("Connection", "Upgrade"), field("Upgrade", "echo")}, 0)
		tunnel, err := c.Tunnel()
		if err != nil {
			t.Error(err)
			return
		}
		defer tunnel.Close()
		if _, err := io.Copy(tunnel, tunnel); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(tunnel, "end")
	})
	c := dial(t, addr)
	say(t, c, upgrade+"early ")
	if got := hear(t, c, "early "); got != "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly " {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("0123456789", 100000)
	go func() { _, _ = io.WriteString(c, long); _ = c.CloseWrite() }()
	if got := gone(t, c); got != long+"end" {
		t.Errorf("%d bytes came back, want %d", len(got), len(long)+3)
	}
	eventually(t, "the connection is over", func() bool { return srv.Stats().Active == 0 })
}

// TestNoTunnel: before the body has come there can be none, and neither where nobody asked. Nothing was said then.
func TestNoTunnel(t *testing.T) {
	for _, text := range []string{"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nContent-Length: 10\r\n\r\nabc", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"} {
		got := talk(t, func(_ context.Context, _ *forward.Request, c forward.Client) {
			_ = c.Head(http.StatusSwitchingProtocols, nil, 0)
			if _, err := c.Tunnel(); !errors.Is(err, forward.ErrNoTunnel) {
				t.Errorf("a tunnel: %v", err)
			}
			_ = c.Head(http.StatusBadGateway, nil, 0)
			_ = c.End(nil)
		}, text)
		if !strings.HasPrefix(got, "HTTP/1.1 502 ") {
			t.Errorf("%q", got)
		}
	}
}

// TestTheEndOfTheClient: who waits for it learns of it.
func TestTheEndOfTheClient(t *testing.T) {
	for _, reset := range []bool{false, true} {
		waits, ended := make(chan struct{}), make(chan error, 1)
		_, addr := serve(t, Settings{}, func(ctx context.Context, _ *forward.Request, c forward.Client) {
			told := make(chan struct{})
			stop := context.AfterFunc(ctx, func() { close(told) })
			defer stop()
			close(waits)
			<-told
			ended <- ctx.Err()
		})
		c := dial(t, addr)
		say(t, c, get)
		<-waits
		if reset {
			_ = c.SetLinger(0)
		}
		_ = c.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("reset %v: %v", reset, err)
		}
	}
}
