package nethttp

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Stats are counters as stub_status shows them. One that sends a head is among the Waiting: net/http tells of a head only
// when it is whole, so that Reading is hardly ever more than 0.
type Stats struct {
	Accepts, Handled, Requests        uint64 // since the start
	Active, Reading, Writing, Waiting int64  // connections now: all, before the handler, in a request, and unused
}

// Plus is the sum, for servers that are shown as one.
func (s Stats) Plus(o Stats) Stats {
	return Stats{
		Accepts: s.Accepts + o.Accepts, Handled: s.Handled + o.Handled, Requests: s.Requests + o.Requests,
		Active: s.Active + o.Active, Reading: s.Reading + o.Reading, Writing: s.Writing + o.Writing, Waiting: s.Waiting + o.Waiting,
	}
}

// Stats are the counters of now.
func (s *Server) Stats() Stats {
	t := &s.tally
	out := Stats{
		Accepts: t.accepts.Load(), Handled: t.accepts.Load(), Requests: t.requests.Load(),
		Active: t.active.Load(), Writing: t.writing.Load(), Waiting: t.waiting.Load(),
	}
	out.Reading = max(out.Active-out.Writing-out.Waiting, 0)
	return out
}

type tally struct {
	accepts, requests        atomic.Uint64
	numbers                  atomic.Uint64 // given to connections
	active, waiting, writing atomic.Int64
	conns                    sync.Map // of net.Conn to its *visit
}

// visit is a client's connection, from accept to close.
type visit struct {
	number   uint64
	began    time.Time
	requests atomic.Int64
	waiting  atomic.Bool
}

type visitKey struct{}

func (t *tally) enter(ctx context.Context, c net.Conn) context.Context {
	v := &visit{number: t.numbers.Add(1), began: time.Now()}
	t.conns.Store(c, v)
	return context.WithValue(ctx, visitKey{}, v)
}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// state is net/http's news of a connection. It is new only after enter.
func (t *tally) state(c net.Conn, s http.ConnState) {
	if s == http.StateNew {
		t.accepts.Add(1)
		t.active.Add(1)
	}
	found, ok := t.conns.Load(c)
	if !ok {
		return
	}
	v := found.(*visit)
	waits := s == http.StateNew || s == http.StateIdle
	if v.waiting.Swap(waits) != waits {
		if waits {
			t.waiting.Add(1)
		} else {
			t.waiting.Add(-1)
		}
	}
	if s == http.StateClosed || s == http.StateHijacked {
		t.conns.Delete(c)
		if s == http.StateClosed {
			t.active.Add(-1)
		}
	}
}

// spent tells whether a connection carries its last request.
func (s *Server) spent(v *visit) bool {
	if v == nil {
		return false
	}
	n := v.requests.Add(1)
	return s.settings.ClientRequests > 0 && n >= int64(s.settings.ClientRequests) ||
		s.settings.ClientAge > 0 && time.Since(v.began) > s.settings.ClientAge
}
