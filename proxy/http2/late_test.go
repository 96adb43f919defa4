package http2

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/front"
)

// answersEarly is a server that reads no body.
func answersEarly(t *testing.T, s front.Settings) (*raw, *door) {
	d := listen(t, s, false, func(_ context.Context, _ *forward.Request, c forward.Client) { say(c, 413, "x") })
	return dialRaw(t, d.addr), d
}

// unhandled waits until all handlers returned.
func (d *door) unhandled(t *testing.T) {
	t.Helper()
	within(t, 5*time.Second, "the handlers return", func() bool { return d.server.Stats().Writing == 0 })
}

// inOrder fails unless these are the next frames.
func (r *raw) inOrder(all ...string) {
	r.t.Helper()
	for _, want := range all {
		if got := r.next(); got != want {
			r.t.Fatalf("%q, want %q", got, want)
		}
	}
}

// TestResetComesLate: a client that still sends sees its answer long before the reset.
func TestResetComesLate(t *testing.T) {
	s := limitsForTests()
	s.ClientBody = 200 * time.Millisecond
	r, _ := answersEarly(t, s)
	_ = r.headers(1, false, post()...)
	r.inOrder("HEADERS 1 413 end=false", "DATA 1 1 end=true")
	from := time.Now()
	_ = r.fr.WriteData(1, false, make([]byte, 16<<10))
	r.inOrder("RST 1 NO_ERROR")
	if took := time.Since(from); took < 150*time.Millisecond {
		t.Errorf("after %v", took)
	}
}

// TestLateBodyEnds: by the client's word, whichever it is, there is nothing to reset.
func TestLateBodyEnds(t *testing.T) {
	for name, end := range map[string]func(r *raw) error{
		"data":     func(r *raw) error { return r.fr.WriteData(1, true, []byte("abc")) },
		"trailers": func(r *raw) error { return r.headers(1, true, "x-late", "1") },
		"reset":    func(r *raw) error { return r.fr.WriteRSTStream(1, http2.ErrCodeStreamClosed) },
	} {
		t.Run(name, func(t *testing.T) {
			s := limitsForTests()
			s.ClientBody, s.ClientIdle = 50*time.Millisecond, 200*time.Millisecond
			r, _ := answersEarly(t, s)
			_ = r.headers(1, false, post()...)
			r.inOrder("HEADERS 1 413 end=false", "DATA 1 1 end=true")
			_ = end(r)
			r.inOrder("GOAWAY 1 NO_ERROR", "closed")
		})
	}
}

// TestLateStreamsGiveWay: new requests are not refused for them.
func TestLateStreamsGiveWay(t *testing.T) {
	s := limitsForTests()
	s.ClientStreams = 2
	r, d := answersEarly(t, s)
	for _, id := range []uint32{1, 3} {
		_ = r.headers(id, false, post()...)
		r.until(fmt.Sprintf("DATA %d 1 end=true", id))
		d.unhandled(t)
	}
	_ = r.headers(5, true, get()...)
	r.inOrder("RST 1 NO_ERROR", "HEADERS 5 413 end=false", "DATA 5 1 end=true")
}

// TestLateBodyIsBounded: no more is taken than the windows said, nor than was declared.
func TestLateBodyIsBounded(t *testing.T) {
	r, d := answersEarly(t, limitsForTests())
	_ = r.headers(1, false, post()...)
	r.until("DATA 1 1 end=true")
	d.unhandled(t)
	for range (lateRoom + streamWindow) / frameSize {
		_ = r.fr.WriteData(1, false, make([]byte, frameSize))
	}
	_ = r.headers(3, true, get()...)
	r.inOrder("HEADERS 3 413 end=false", "DATA 3 1 end=true")
	_ = r.fr.WriteData(1, false, []byte("x"))
	r.inOrder("RST 1 FLOW_CONTROL_ERROR")
	_ = r.headers(5, false, post("content-length", "2")...)
	r.until("DATA 5 1 end=true")
	d.unhandled(t)
	_ = r.fr.WriteData(5, false, []byte("abc"))
	r.inOrder("RST 5 PROTOCOL_ERROR")
}
