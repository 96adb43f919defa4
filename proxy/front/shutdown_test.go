package front

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// gate has handlers announce themselves, and go on when they are let.
type gate struct{ here, let chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 10), make(chan struct{})} }

func (g gate) handle(_ context.Context, r *forward.Request, c forward.Client) {
	if strings.HasPrefix(string(r.Target), "/waits") {
		g.here <- struct{}{}
		<-g.let
	}
	plain(context.Background(), r, c)
}

// TestShutdown: unused connections are closed, what is asked for is answered and told that this is the end, and nobody
// new is taken.
func TestShutdown(t *testing.T) {
	g := newGate()
	srv, addr := serve(t, Settings{}, g.handle)
	idle, busy := dial(t, addr), dial(t, addr)
	say(t, idle, get)
	hear(t, idle, "GET /\n")
	say(t, busy, "GET /waits HTTP/1.1\r\nHost: a\r\n\r\n"+get)
	<-g.here
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(context.Background()) }()
	if got := gone(t, idle); got != "" {
		t.Errorf("the unused one got %q", got)
	}
	eventually(t, "nobody listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	close(g.let)
	if got := gone(t, busy); strings.Count(got, "200 OK") != 1 || headerOf(got, "Connection") != "close" {
		t.Errorf("the busy one got %q", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestShutdownOfTheFresh: a connection that was just made has time for its request; one that never says anything does not
// hold the end up.
func TestShutdownOfTheFresh(t *testing.T) {
	srv, addr := serve(t, Settings{}, plain)
	asks, silent := dial(t, addr), dial(t, addr)
	eventually(t, "both are there", func() bool { return srv.Stats().Waiting == 2 })
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(context.Background()) }()
	eventually(t, "it has begun", srv.closing.Load)
	time.Sleep(20 * time.Millisecond)
	say(t, asks, get)
	if got := gone(t, asks); !strings.HasSuffix(got, "GET /\n") {
		t.Errorf("%q", got)
	}
	gone(t, silent)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestShutdownCuts: what is left when the time is over.
func TestShutdownCuts(t *testing.T) {
	g := newGate()
	tunnels := make(chan struct{})
	srv, addr := serve(t, Settings{}, func(ctx context.Context, r *forward.Request, c forward.Client) {
		if string(r.Target) != "/tunnel" {
			g.handle(ctx, r, c)
			return
		}
		_ = c.Head(http.StatusSwitchingProtocols, nil, 0)
		tunnel, err := c.Tunnel()
		if err != nil {
			t.Error(err)
			return
		}
		close(tunnels)
		_, _ = io.Copy(tunnel, tunnel)
		_ = tunnel.Close()
	})
	busy, tunnel, body := dial(t, addr), dial(t, addr), dial(t, addr)
	say(t, busy, "GET /waits HTTP/1.1\r\nHost: a\r\n\r\n")
	say(t, tunnel, "GET /tunnel HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n")
	say(t, body, "POST /waits HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
	<-g.here
	<-g.here
	<-tunnels
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := srv.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if got := gone(t, tunnel); !strings.HasPrefix(got, "HTTP/1.1 101 ") {
		t.Errorf("%q", got)
	}
	gone(t, busy)
	gone(t, body)
	close(g.let)
}

// TestLeave: connections end with their next answer, new ones are taken all the same.
func TestLeave(t *testing.T) {
	srv, addr := serve(t, Settings{}, plain)
	kept := dial(t, addr)
	say(t, kept, get)
	hear(t, kept, "GET /\n")
	srv.Leave()
	for _, c := range []io.ReadWriter{kept, dial(t, addr)} {
		_, _ = io.WriteString(c, get)
		if got, err := io.ReadAll(c); err != nil || headerOf(string(got), "Connection") != "close" {
			t.Errorf("%q, %v", got, err)
		}
	}
}
