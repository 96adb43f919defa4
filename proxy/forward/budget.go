package forward

import (
	"context"
	"sync"
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

	mu      sync.Mutex
	seconds [budgetWindow]tally
}

type tally struct {
	second            int64
	requests, retries int
}

// NewBudget makes a budget: share is a part of 1, atOnce the retries that are always allowed at the same time, wait how
// long a retry waits for one of those.
func NewBudget(clock balance.Clock, share float64, atOnce int, wait time.Duration) *Budget {
	return &Budget{share: share, wait: wait, clock: clock, slots: make(chan struct{}, atOnce)}
}

// Request counts a request in.
func (b *Budget) Request() {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.now().requests++
	b.mu.Unlock()
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
	this := b.now()
	var requests, retries int
	for _, s := range b.seconds {
		if s.second > this.second-budgetWindow {
			requests += s.requests
			retries += s.retries
		}
	}
	if float64(retries+1) > b.share*float64(requests) {
		return false
	}
	this.retries++
	return true
}

// now is the tally of the present second. The mutex is held.
func (b *Budget) now() *tally {
	second := b.clock() / int64(time.Second)
	t := &b.seconds[second%budgetWindow]
	if t.second != second {
		*t = tally{second: second}
	}
	return t
}
