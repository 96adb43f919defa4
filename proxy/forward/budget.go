package forward

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// budgetWindow is how many whole seconds of requests and retries a budget looks back on.
const budgetWindow = 10

// Budget keeps retries from making an overload worse: of the requests of the last 10 s at most Share may be retried,
// and beyond that only a few at once. A retry that finds neither waits a short while for one of those few, so that the
// burst which a dying peer leaves behind is spread out, not refused.
type Budget struct {
	share float64
	wait  time.Duration
	clock balance.Clock
	slots chan struct{}

	requests [budgetWindow]tally

	mu      sync.Mutex // of retries
	retries [budgetWindow]tally
}

// tally counts what falls into one second, without a lock: the second in its upper half, the number in the lower.
type tally struct{ atomic.Uint64 }

// add counts one.
func (t *tally) add(second int64) {
	for {
		have := t.Load()
		next := have + 1
		if have>>32 != uint64(second) {
			next = uint64(second)<<32 | 1
		}
		if t.CompareAndSwap(have, next) {
			return
		}
	}
}

// since is the number, unless it is of a second before from.
func (t *tally) since(from int64) int {
	have := t.Load()
	if int64(have>>32) < from {
		return 0
	}
	return int(uint32(have))
}

// NewBudget makes a budget: share is a part of 1, atOnce the retries that are always allowed at the same time, wait how
// long a retry waits for one of those.
func NewBudget(clock balance.Clock, share float64, atOnce int, wait time.Duration) *Budget {
	return &Budget{share: share, wait: wait, clock: clock, slots: make(chan struct{}, atOnce)}
}

// Request counts a request in, at a moment of the budget's clock.
func (b *Budget) Request(now int64) {
	if b == nil {
		return
	}
	second := now / int64(time.Second)
	b.requests[second%budgetWindow].add(second)
}

// Take asks for one retry. When held is true the retry has one of the few slots: call Release once it is answered. A nil
// Budget allows everything.
func (b *Budget) Take(ctx context.Context) (ok, held bool) {
	if b == nil || b.takeShare() {
		return true, false
	}
	select {
	case b.slots <- struct{}{}:
		return true, true
	default:
	}
	t := time.NewTimer(b.wait)
	defer t.Stop()
	select {
	case b.slots <- struct{}{}:
		return true, true
	case <-ctx.Done():
	case <-t.C:
	}
	return false, false
}

// Release gives a held slot back.
func (b *Budget) Release() { <-b.slots }

func (b *Budget) takeShare() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	second := b.clock() / int64(time.Second)
	var requests, retries int
	for i := range b.requests {
		requests += b.requests[i].since(second - budgetWindow + 1)
		retries += b.retries[i].since(second - budgetWindow + 1)
	}
	if float64(retries+1) > b.share*float64(requests) {
		return false
	}
	b.retries[second%budgetWindow].add(second)
	return true
}
