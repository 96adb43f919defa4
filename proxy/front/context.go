package front

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// life is the context of all requests of a connection: it ends when the client is gone. It is made with the connection, so
// that a request costs none. While a request is handled the sweeper looks for the client's end every now and then.
type life struct {
	over atomic.Bool

	mu    sync.Mutex
	done  chan struct{}
	calls map[*call]struct{}
}

// call is what somebody wants to be called at the end.
type call struct{ f func() }

// Deadline is context.Context's: there is none.
func (*life) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value is context.Context's: there is none.
func (*life) Value(any) any { return nil }

// Done is context.Context's.
func (l *life) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.over.Load() {
			close(l.done)
		}
	}
	return l.done
}

// Err is context.Context's.
func (l *life) Err() error {
	if l.over.Load() {
		return context.Canceled
	}
	return nil
}

// AfterFunc is what context.AfterFunc asks for: it saves it a goroutine.
func (l *life) AfterFunc(f func()) (stop func() bool) {
	c := &call{f}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over.Load() {
		go f()
		return func() bool { return false }
	}
	if l.calls == nil {
		l.calls = map[*call]struct{}{}
	}
	l.calls[c] = struct{}{}
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, waits := l.calls[c]; !waits {
			return false
		}
		delete(l.calls, c)
		return true
	}
}

// end tells everybody that the client is gone.
func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over.Swap(true) {
		return
	}
	if l.done != nil {
		close(l.done)
	}
	for c := range l.calls {
		go c.f()
	}
	l.calls = nil
}
