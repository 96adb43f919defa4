package http2

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestShutdown: clients are told to go elsewhere, what they asked for before ends; at the deadline it is cut.
func TestShutdown(t *testing.T) {
	for name, tc := range map[string]struct {
		limit time.Duration
		cut   bool
	}{"in time": {20 * time.Second, false}, "too late": {50 * time.Millisecond, true}} {
		t.Run(name, func(t *testing.T) {
			began, goOn := make(chan struct{}), make(chan struct{})
			d := listen(t, limitsForTests(), false, func(ctx context.Context, _ *forward.Request, c forward.Client) {
				close(began)
				select {
				case <-goOn:
					say(c, 200, "x")
				case <-ctx.Done():
				}
			})
			r := dialRaw(t, d.addr)
			_ = r.headers(1, true, get()...)
			<-began
			done := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
			defer cancel()
			go func() { done <- d.server.Shutdown(ctx) }()
			r.until("GOAWAY 1 NO_ERROR")
			if !tc.cut {
				close(goOn)
				r.until("DATA 1 1 end=true")
			}
			r.until("closed")
			if err := <-done; errors.Is(err, context.DeadlineExceeded) != tc.cut {
				t.Errorf("Shutdown: %v", err)
			}
			late, err := net.Dial("tcp", d.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer late.Close()
			_ = late.SetDeadline(time.Now().Add(5 * time.Second))
			if n, err := late.Read(make([]byte, 1)); err == nil {
				t.Errorf("a connection that came after it: %d bytes", n)
			}
		})
	}
}

// TestAfterGoAway: what was sent before the client knew is passed over, and harms nobody.
func TestAfterGoAway(t *testing.T) {
	goOn := make(chan struct{})
	d := listen(t, limitsForTests(), false, func(_ context.Context, _ *forward.Request, c forward.Client) {
		<-goOn
		say(c, 200, "x")
	})
	r := dialRaw(t, d.addr)
	_ = r.headers(1, true, get()...)
	within(t, 5*time.Second, "it runs", func() bool { return d.server.Stats().Writing == 1 })
	ended := make(chan error, 1)
	go func() { ended <- d.server.Shutdown(t.Context()) }()
	r.until("GOAWAY 1 NO_ERROR")
	_ = r.headers(3, false, post()...)
	_ = r.fr.WriteData(3, false, []byte("late"))
	_ = r.fr.WriteWindowUpdate(3, 10)
	_ = r.headers(3, true, "x-late", "trailer")
	_ = r.headers(5, true, get()...)
	_ = r.fr.WriteRSTStream(5, 8)
	close(goOn)
	r.until("DATA 1 1 end=true")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
