package listener

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff spaces attempts out: it doubles from min to max, and each wait is drawn from the upper half of its step, so
// that owners that lost the same broker or database don't come back in one beat.
type backoff struct {
	min, max time.Duration
	step     time.Duration
}

// reset makes the next wait a short one; call it after a success.
func (b *backoff) reset() { b.step = 0 }

// wait sleeps for the next step. It reports false when ctx ended first.
func (b *backoff) wait(ctx context.Context) bool {
	b.step = min(max(2*b.step, b.min), b.max)
	return sleep(ctx, b.step/2+rand.N(b.step/2+1))
}

// sleep waits for d and reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}
