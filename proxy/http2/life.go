package http2

import (
	"context"
	"sync"
	"time"
)

// life is a request's context. It ends when the client takes the request back, and with its connection. It has no goroutine,
// and a channel only when somebody asks for it.
type life struct {
	mu    sync.Mutex
	over  bool
	done  chan struct{}
	calls map[*call]struct{}
}

type call struct{ f func() }

// Deadline is context.Context's: there is none.
func (l *life) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value is context.Context's: there are none.
func (l *life) Value(any) any { return nil }

// Done is context.Context's.
func (l *life) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.over {
			close(l.done)
		}
	}
	return l.done
}

// Err is context.Context's.
func (l *life) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return context.Canceled
	}
	return nil
}

// AfterFunc is what context.AfterFunc asks for: it saves it a goroutine.
func (l *life) AfterFunc(f func()) (stop func() bool) {
	c := &call{f}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
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
		_, waits := l.calls[c]
		delete(l.calls, c)
		return waits
	}
}

func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	if l.done != nil {
		close(l.done)
	}
	for c := range l.calls {
		go c.f()
	}
	l.calls = nil
}
