package http2

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestRapidReset: requests that are taken back as fast as they are made end the connection, and never run beside each other in
// greater number than streams are allowed.
func TestRapidReset(t *testing.T) {
	var now, most, all atomic.Int32
	release := make(chan struct{})
	defer close(release)
	s := limitsForTests()
	s.ClientStreams = 10
	d := listen(t, s, false, func(context.Context, *forward.Request, forward.Client) {
		all.Add(1)
		for n := now.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		<-release // a handler that does not notice
		now.Add(-1)
	})
	r := dialRaw(t, d.addr)
	go func() {
		for id := uint32(1); id < 20000; id += 2 {
			if r.headers(id, true, get()...) != nil || r.fr.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
				return
			}
		}
	}()
	if !r.ends() {
		t.Error("the connection goes on")
	}
	within(t, 5*time.Second, "the connection is over or says so", func() bool { return all.Load() > 0 })
	if most.Load() > 10 {
		t.Errorf("%d at once", most.Load())
	}
}

// TestContinuationFlood: a head that never ends ends the connection, before it is held whole.
func TestContinuationFlood(t *testing.T) {
	d := listen(t, limitsForTests(), false, func(_ context.Context, _ *forward.Request, c forward.Client) { say(c, 200, "no") })
	r := dialRaw(t, d.addr)
	chunk := r.block("x-fill", strings.Repeat("a", 8<<10))
	sent := make(chan int, 1)
	go func() {
		_ = r.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.block(get()...)})
		n := 0
		for ; n < 100<<20; n += len(chunk) {
			if r.fr.WriteContinuation(1, false, chunk) != nil {
				break
			}
		}
		sent <- n
	}()
	for f := r.next(); f != "closed" && f != "nothing"; f = r.next() {
		if strings.HasPrefix(f, "HEADERS") {
			t.Errorf("answered: %s", f)
		}
	}
	if n := <-sent; n > 20<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

// TestControlFlood: who asks for answers to control frames and takes none is cut off.
func TestControlFlood(t *testing.T) {
	d := listen(t, limitsForTests(), false, func(_ context.Context, _ *forward.Request, c forward.Client) { say(c, 200, "x") })
	r := dialRaw(t, d.addr)
	for n := 0; ; n++ {
		if n > 1<<20 {
			t.Fatal("never cut off")
		}
		if r.fr.WritePing(false, [8]byte{}) != nil {
			return
		}
	}
}

// TestSlowClients: one that sends no body, and one that takes no answer, is not waited for longer than the limits say.
func TestSlowClients(t *testing.T) {
	s := limitsForTests()
	s.ClientBody, s.ClientSend = 60*time.Millisecond, 60*time.Millisecond
	for name, tc := range map[string]struct {
		post   bool
		handle func(r *forward.Request, c forward.Client)
		want   string
	}{
		"no body": {true, func(r *forward.Request, c forward.Client) {
			if _, err := io.ReadAll(r.Body); err == nil {
				t.Error("a whole body")
			}
			say(c, 408, "")
		}, "HEADERS 1 408 end=true"},
		"takes nothing of what flows": {false, func(_ *forward.Request, c forward.Client) {
			_ = c.Head(200, nil, -1)
			for c.Write(make([]byte, 1000)) == nil {
			}
			c.Abort()
		}, "RST 1 INTERNAL_ERROR"},
		"takes not the little that is all": {false, func(_ *forward.Request, c forward.Client) { say(c, 200, "little") }, "RST 1 INTERNAL_ERROR"},
		"nor the last of it": {false, func(_ *forward.Request, c forward.Client) {
			_ = c.Head(200, nil, -1)
			_ = c.(forward.Finisher).Finish([]byte("x"), nil)
		}, "RST 1 INTERNAL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			d := listen(t, s, false, func(_ context.Context, r *forward.Request, c forward.Client) {
				if string(r.Method) == "HEAD" {
					say(c, 200, "")
					return
				}
				tc.handle(r, c)
			})
			r := dialRaw(t, d.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			head := get()
			if tc.post {
				head = post()
			}
			_ = r.headers(1, !tc.post, head...)
			r.until(tc.want)
			_ = r.headers(3, true, ":method", "HEAD", ":scheme", "http", ":authority", "a.example", ":path", "/") // the connection goes on
			if !tc.post {
				r.until("HEADERS 3 200 end=true")
			}
			within(t, 5*time.Second, "all handlers end", func() bool { return d.server.Stats().Writing == 0 })
		})
	}
}

// TestIdleConnection: it is told that it ends, and closed.
func TestIdleConnection(t *testing.T) {
	s := limitsForTests()
	s.ClientIdle = 50 * time.Millisecond
	d := listen(t, s, false, func(_ context.Context, _ *forward.Request, c forward.Client) { say(c, 200, "x") })
	r := dialRaw(t, d.addr)
	_ = r.headers(1, true, get()...)
	r.until("DATA 1 1 end=true")
	r.until("GOAWAY 1 NO_ERROR")
	r.until("closed")
	within(t, 5*time.Second, "it is counted out", func() bool { s := d.server.Stats(); return s.Active == 0 && s.Waiting == 0 })
}

// TestLastRequest: with as many requests as allowed, and with the next one once the server is left, a connection ends.
func TestLastRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare  func(*Server)
		requests uint32
	}{
		"keepalive_requests": {func(*Server) {}, 2},
		"left":               {(*Server).Leave, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := limitsForTests()
			s.ClientRequests = 2
			d := listen(t, s, false, func(_ context.Context, _ *forward.Request, c forward.Client) { say(c, 200, "x") })
			tc.prepare(d.server)
			r := dialRaw(t, d.addr)
			last := 2*tc.requests - 1
			for id := uint32(1); id < last; id += 2 {
				_ = r.headers(id, true, get()...)
				r.until(fmt.Sprintf("DATA %d 1 end=true", id))
			}
			_ = r.headers(last, true, get()...)
			var seen []string
			for f := r.next(); f != "closed" && f != "nothing"; f = r.next() {
				seen = append(seen, f)
			}
			for _, want := range []string{"HEADERS %d 200 end=false", "DATA %d 1 end=true", "GOAWAY %d NO_ERROR"} {
				if want = fmt.Sprintf(want, last); !slices.Contains(seen, want) {
					t.Errorf("no %s but %q", want, seen)
				}
			}
		})
	}
}
