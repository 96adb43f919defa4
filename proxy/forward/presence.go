package forward

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Presence is the context of requests whose client is there: it ends when that is gone, or takes its request back. It has no
// goroutine, no deadline, no values, and a channel only when somebody asks for it. The zero value is ready; it must not be copied.
type Presence struct {
	over atomic.Bool

	mu    sync.Mutex
	done  chan struct{}
	calls map[*call]struct{}
}

// call is what somebody wants to be called at the end.
type call struct{ f func() }

// Deadline is context.Context's: there is none.
func (*Presence) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value is context.Context's: there is none.
func (*Presence) Value(any) any { return nil }

// Done is context.Context's.
func (p *Presence) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = make(chan struct{})
		if p.over.Load() {
			close(p.done)
		}
	}
	return p.done
}

// Err is context.Context's.
func (p *Presence) Err() error {
	if p.over.Load() {
		return context.Canceled
	}
	return nil
}

// AfterFunc is what context.AfterFunc asks for: it saves it a goroutine.
func (p *Presence) AfterFunc(f func()) (stop func() bool) {
	c := &call{f}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over.Load() {
		go f()
		return func() bool { return false }
	}
	if p.calls == nil {
		p.calls = map[*call]struct{}{}
	}
	p.calls[c] = struct{}{}
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, waits := p.calls[c]; !waits {
			return false
		}
		delete(p.calls, c)
		return true
	}
}

// Over tells whether it has ended. It takes no lock.
func (p *Presence) Over() bool { return p.over.Load() }

// End tells everybody that the client is gone. It may be called more than once.
func (p *Presence) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over.Swap(true) {
		return
	}
	if p.done != nil {
		close(p.done)
	}
	for c := range p.calls {
		go c.f()
	}
	p.calls = nil
}
