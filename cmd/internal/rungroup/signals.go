package rungroup

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// ExitAtOnce is the exit code of a process that a second signal ended.
const ExitAtOnce = 130

// Signals returns a context that ends with the first SIGINT, SIGTERM or SIGQUIT; each further one calls exit with
// ExitAtOnce, for the person who doesn't want to wait for an orderly end. SIGQUIT is what nginx ends in good order by, and
// what its image tells containers to be stopped with; for a dump of goroutines there are SIGABRT and the profiles. stop
// releases the signals.
func Signals(ctx context.Context, exit func(code int)) (_ context.Context, stop func()) {
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	ctx, cancel := context.WithCancelCause(ctx)
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		watch(got, quit, cancel, exit)
	}()
	return ctx, func() {
		signal.Stop(got)
		close(quit)
		<-gone
		cancel(context.Canceled)
	}
}

// watch turns the first signal into the end of the context and further ones into the end of the process.
func watch(got <-chan os.Signal, quit <-chan struct{}, cancel context.CancelCauseFunc, exit func(int)) {
	for first := true; ; first = false {
		select {
		case s := <-got:
			if first {
				cancel(errors.New("signal: " + s.String()))
			} else {
				exit(ExitAtOnce)
			}
		case <-quit:
			return
		}
	}
}
