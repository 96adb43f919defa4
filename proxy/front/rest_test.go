package front

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// goroutine is the name of the one that it runs on.
func goroutine() string {
	var b [64]byte
	name, _, _ := strings.Cut(string(b[:runtime.Stack(b[:], false)]), " [")
	return name
}

// TestUnusedConnectionsRest: after a second without a request another goroutine, with a small stack, waits for the next one.
func TestUnusedConnectionsRest(t *testing.T) {
	served := make(chan string, 1)
	srv, addr := serve(t, Settings{}, func(ctx context.Context, r *forward.Request, c forward.Client) {
		served <- goroutine()
		plain(ctx, r, c)
	})
	c := dial(t, addr)
	before := ""
	for round := range 4 {
		say(t, c, get)
		hear(t, c, "GET /\n")
		now := <-served
		if rested := now != before; rested != (round%2 == 0) {
			t.Fatalf("round %d: on %q after %q", round, now, before)
		}
		before = now
		if round != 1 {
			continue
		}
		srv.mu.Lock()
		srv.began = srv.began.Add(-2 * time.Second)
		srv.mu.Unlock()
		eventually(t, "it waits", func() bool { return srv.Stats().Waiting == 1 })
		srv.sweep()
		eventually(t, "its goroutine is gone", func() bool {
			all := make([]byte, 1<<20)
			return !strings.Contains(string(all[:runtime.Stack(all, true)]), before+" [")
		})
	}
	if s := srv.Stats(); s.Active != 1 || s.Requests != 4 {
		t.Errorf("%+v", s)
	}
}
