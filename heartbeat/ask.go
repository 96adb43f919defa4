package heartbeat

import (
	"context"
	"fmt"
	"runtime/debug"
)

// asker calls a function of the service such that it can neither stop the Sender nor bring it down. It is for one
// goroutine; the calls themselves run in goroutines of their own, one at a time.
type asker[T any] struct {
	name string
	call func() (T, error) // nil: there is nothing to ask

	pending chan answer[T] // of the call that runs, nil when none does
	last    T
	known   bool // last is an answer
}

type answer[T any] struct {
	value T
	err   error
}

// start calls the function, unless it runs already.
func (a *asker[T]) start() {
	if a.call == nil || a.busy() {
		return
	}
	pending := make(chan answer[T], 1) // so that the call can always end
	a.pending = pending
	call := a.call
	go func() { pending <- contained(call) }()
}

// busy reports whether a call still runs.
func (a *asker[T]) busy() bool {
	if a.pending == nil {
		return false
	}
	select {
	case got := <-a.pending:
		_ = a.take(got)
		return false
	default:
		return true
	}
}

// collect waits for the call until ctx ends and returns the newest answer there is, if there ever was one.
func (a *asker[T]) collect(ctx context.Context) (value T, known bool, err error) {
	if a.pending == nil {
		return a.last, a.known, nil
	}
	select {
	case got := <-a.pending:
		err = a.take(got)
	case <-ctx.Done():
		err = fmt.Errorf("callback %s has not returned in time", a.name)
	}
	return a.last, a.known, err
}

func (a *asker[T]) take(got answer[T]) error {
	a.pending = nil
	if got.err != nil {
		return fmt.Errorf("callback %s: %w", a.name, got.err)
	}
	a.last, a.known = got.value, true
	return nil
}

// contained turns a panic into an error.
func contained[T any](call func() (T, error)) (got answer[T]) {
	defer func() {
		if p := recover(); p != nil {
			got.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	got.value, got.err = call()
	return got
}
