package confgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/upstrand/upstrand/registry"
)

// errLeaseOver: the holder's own clock says that the lease may have expired.
var errLeaseOver = errors.New("the lease was not renewed in time")

// fenced says that the lease is another's by now. After registry.ErrReload, which is an ErrFenced, too, nothing is known.
func fenced(err error) bool {
	return errors.Is(err, registry.ErrFenced) && !errors.Is(err, registry.ErrReload)
}

// lease is a held lease. Its end is counted on this process's monotonic clock from before the call that got or renewed
// it, so it ends here before it ends in the database, however long an answer took or the process was paused.
type lease struct {
	g    *Generator
	busy chan struct{} // 1 slot: one call to the database at a time, since a renewal names the epoch

	mu   sync.Mutex // guards what follows; never held over a call
	held registry.Lease
	ends time.Time
}

func newLease(g *Generator, held registry.Lease, since time.Time) *lease {
	return &lease{g: g, busy: make(chan struct{}, 1), held: held, ends: since.Add(g.cfg.Lease)}
}

func (l *lease) current() registry.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// left is how long something may still be written; 0 when not at all. The last tenth of the lease is a margin.
func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, time.Until(l.ends)-l.g.cfg.Lease/10)
}

// guard gives a context for something that must not outlast the lease, nor d; errLeaseOver when the lease is over.
func (l *lease) guard(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc, error) {
	left := l.left()
	if left <= 0 {
		return nil, nil, errLeaseOver
	}
	ctx, cancel := context.WithTimeout(ctx, min(left, d))
	return ctx, cancel, nil
}

// keep renews each third of the lease until it is lost, and says why; ctx's error when that ended first.
func (l *lease) keep(ctx context.Context) error {
	next := time.NewTimer(l.g.cfg.Lease / 3)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next.C:
		}
		err := l.renew(ctx)
		if fenced(err) {
			return err
		}
		left := l.left()
		if left <= 0 {
			return errors.Join(errLeaseOver, err)
		}
		if err == nil {
			next.Reset(l.g.cfg.Lease / 3)
			continue
		}
		if ctx.Err() == nil {
			l.g.log.Warn().Err(err).Msg("can't renew the lease yet")
		}
		next.Reset(min(left, l.g.cfg.Lease/10))
	}
}

// call runs one call about the lease, bounded by what is left of it; a success is taken as of before the call.
func (l *lease) call(ctx context.Context, f func(context.Context, registry.Lease) (registry.Lease, bool, error)) error {
	select {
	case l.busy <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.busy }()
	start := time.Now()
	ctx, cancel, err := l.guard(ctx, l.g.cfg.DatabaseTimeout)
	if err != nil {
		return err
	}
	defer cancel()
	held, renewed, err := f(ctx, l.current())
	l.g.state.database(err)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
	if renewed {
		l.ends = start.Add(l.g.cfg.Lease)
	}
	return nil
}

func (l *lease) renew(ctx context.Context) error {
	err := l.call(ctx, func(ctx context.Context, held registry.Lease) (registry.Lease, bool, error) {
		return held, true, l.g.cfg.Leases.RenewLease(ctx, held)
	})
	if err != nil {
		return fmt.Errorf("confgen: renew lease %s: %w", l.g.cfg.Name, err)
	}
	return nil
}

// raise sets the epoch to at least n.
func (l *lease) raise(ctx context.Context, n int64) error {
	err := l.call(ctx, func(ctx context.Context, held registry.Lease) (registry.Lease, bool, error) {
		held, err := l.g.cfg.Leases.RaiseEpoch(ctx, held, n)
		return held, false, err
	})
	if err != nil {
		return fmt.Errorf("confgen: raise the epoch of lease %s to %d: %w", l.g.cfg.Name, n, err)
	}
	return nil
}

// release gives the lease back, so that a standby need not wait for its end.
func (l *lease) release() error {
	ctx, cancel := context.WithTimeout(context.Background(), l.g.cfg.Lease)
	defer cancel()
	return l.g.cfg.Leases.ReleaseLease(ctx, l.current())
}
