package nethttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

type handlerFunc func(context.Context, *forward.Request, forward.Client)

func (f handlerFunc) Handle(ctx context.Context, r *forward.Request, c forward.Client) { f(ctx, r, c) }

// talk sends text to a server with that handler and gives all that comes back until the server closes.
func talk(t *testing.T, h handlerFunc, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(Settings{ClientBody: 100 * time.Millisecond}, h, log.New(io.Discard, "", 0))
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		_ = s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("the connection is not closed: %v", err)
	}
	return string(got)
}

const unfinished = "POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 10\r\n\r\nabc"

// TestHandlerWithoutAnAnswer: net/http would make up a 200, and wait for the body first.
func TestHandlerWithoutAnAnswer(t *testing.T) {
	for name, h := range map[string]handlerFunc{
		"returns": func(context.Context, *forward.Request, forward.Client) {},
		"aborts":  func(_ context.Context, _ *forward.Request, c forward.Client) { c.Abort() },
		"panics":  func(context.Context, *forward.Request, forward.Client) { panic("a bug") },
		"panics after reading": func(_ context.Context, r *forward.Request, _ forward.Client) {
			if r.Body != nil {
				_, _ = r.Body.Read(make([]byte, 10))
			}
			panic("a bug")
		},
	} {
		for _, request := range []string{"GET / HTTP/1.1\r\nHost: shop\r\n\r\n", unfinished} {
			if got := talk(t, h, request); got != "" {
				t.Errorf("%s: the client got %q for %q", name, got, request)
			}
		}
	}
}

// TestAnswerBeforeTheBodyEnds: the client gets it, and learns that the connection takes no other request.
func TestAnswerBeforeTheBodyEnds(t *testing.T) {
	h := func(_ context.Context, r *forward.Request, c forward.Client) { forward.Plain(c, r, 200, "early") }
	got := talk(t, h, unfinished)
	if !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.Contains(got, "\r\nConnection: close\r\n") || !strings.HasSuffix(got, "early\n") {
		t.Errorf("%q", got)
	}
}

// TestNoTunnelBeforeTheBody: net/http can't read a body any more once its connection was taken over. Nothing was said then.
func TestNoTunnelBeforeTheBody(t *testing.T) {
	got := talk(t, func(_ context.Context, _ *forward.Request, c forward.Client) {
		_ = c.Head(http.StatusSwitchingProtocols, nil, 0)
		if _, err := c.Tunnel(); !errors.Is(err, forward.ErrNoTunnel) {
			t.Errorf("a tunnel: %v", err)
		}
		_ = c.Head(http.StatusBadGateway, nil, 0)
		_ = c.End(nil)
	}, unfinished)
	if !strings.HasPrefix(got, "HTTP/1.1 502 ") {
		t.Errorf("%q", got)
	}
}

// TestTrailerIsSentOnce: net/http adds what the head says in an announced field to what the trailer says.
func TestTrailerIsSentOnce(t *testing.T) {
	got := talk(t, func(_ context.Context, _ *forward.Request, c forward.Client) {
		field := func(name, value string) forward.Field { return forward.Field{Name: []byte(name), Value: []byte(value)} }
		_ = c.Head(200, []forward.Field{field("Trailer", "X-Sum"), field("X-Sum", "early")}, -1)
		_ = c.Write([]byte("body"))
		_ = c.End([]forward.Field{field("X-Sum", "late")})
	}, "GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	if sum := strings.Join(resp.Trailer["X-Sum"], ","); sum != "late" || resp.Header.Get("X-Sum") != "early" {
		t.Errorf("trailer %q, head %v", sum, resp.Header)
	}
}
