package listener

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/registry"
)

// settle lets d pass and everything come to rest.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestOwnerAppliesInOrderOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		o := testOwner(t, testConfig(reg), 0, l)
		stop := o.start()
		for i := range 5000 {
			l.beat("orders", fmt.Sprintf("i%d", i%100), int64(i/100+1))
			if i%7 == 0 {
				l.hole()
			}
			if i%500 == 0 {
				settle(30 * time.Millisecond)
			}
		}
		settle(time.Second)
		stop()
		reg.exactlyOnce(t, 0, l)
		if reg.seq("orders/i42") != 50 {
			t.Errorf("last seq of i42: %d", reg.seq("orders/i42"))
		}
		if fmt.Sprint(reg.adopted) != "[6]" {
			t.Errorf("adopted: %v", reg.adopted)
		}
	})
}

// A first beat must be on its way to the registry at once, and a busy log must make few transactions.
func TestBatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		o := testOwner(t, testConfig(reg), 1, l)
		var batches atomic.Int64
		reg.before = func(int32, registry.Batch) error { batches.Add(1); return nil }
		defer o.start()()
		settle(500 * time.Millisecond)
		l.beat("orders", "a", 1)
		settle(60 * time.Millisecond)
		if reg.seq("orders/a") != 1 {
			t.Error("a beat was not applied 60ms after it was in the log")
		}
		batches.Store(0)
		l.fetches.Store(0)
		for i := range 1000 {
			l.beat("orders", "a", int64(i+2))
			time.Sleep(time.Millisecond)
		}
		settle(60 * time.Millisecond)
		if n := batches.Load(); n < 10 || n > 30 {
			t.Errorf("%d batches in a second, want about one in 50ms", n)
		}
		if n := l.fetches.Load(); n > 3*batches.Load() {
			t.Errorf("%d fetches for %d batches", n, batches.Load())
		}
	})
}

func TestBatchIsBoundedAndOnlyTheLastIsCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		for i := range 4500 {
			l.beat("orders", "a", int64(i+1))
		}
		var sizes []int
		var caught []bool
		reg.before = func(_ int32, b registry.Batch) error {
			sizes, caught = append(sizes, len(b.Records)), append(caught, b.CaughtUp)
			return nil
		}
		cfg := testConfig(reg)
		cfg.PulseInterval = time.Hour
		o := testOwner(t, cfg, 1, l)
		stop := o.start()
		settle(time.Second)
		stop()
		if len(sizes) < 3 || sizes[0] != 2000 || sizes[1] != 2000 || caught[0] || caught[1] || !caught[len(caught)-1] {
			t.Errorf("batches of %v, caught up: %v", sizes, caught)
		}
	})
}

// The owner may die at any point: before, in and after a transaction. Whatever it leaves, the next goes on exactly there.
func TestKilledAnywhereNothingLostNothingTwice(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			l, reg := newFakeLog(), newFakeRegistry()
			cfg := testConfig(reg)
			cfg.BatchRecords = 1 + rng.IntN(40)
			for life := 0; life < 12; life++ {
				ctx, cancel := context.WithCancel(context.Background())
				at, op := rng.IntN(12), 0
				maybeDie := func(int32, registry.Batch) error {
					if op++; op > at {
						cancel()
						return context.Canceled
					}
					return nil
				}
				reg.look(func() { reg.before, reg.after = maybeDie, maybeDie })
				done := make(chan struct{})
				o := testOwner(t, cfg, 0, l)
				go func() { defer close(done); o.run(ctx) }()
				for range 30 {
					for range rng.IntN(20) {
						l.beat("orders", fmt.Sprint(rng.IntN(9)), int64(life))
					}
					time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
				}
				cancel()
				<-done
			}
			reg.look(func() { reg.before, reg.after = nil, nil })
			stop := testOwner(t, cfg, 0, l).start()
			settle(3 * time.Second)
			stop()
			reg.exactlyOnce(t, 0, l)
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Transactions that fail before or after the commit, openings that fail: each record still counts once.
func TestFlakyDatabase(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			l, reg := newFakeLog(), newFakeRegistry()
			flaky := func(int32, registry.Batch) error {
				if rng.IntN(4) == 0 {
					return context.DeadlineExceeded
				}
				return nil
			}
			reg.before, reg.after = flaky, flaky
			reg.openErr = func() error {
				if rng.IntN(3) == 0 {
					return errAway
				}
				return nil
			}
			cfg := testConfig(reg)
			cfg.BatchRecords = 50
			stop := testOwner(t, cfg, 0, l).start()
			for i := range 500 {
				l.beat("orders", "a", int64(i+1))
				time.Sleep(10 * time.Millisecond)
			}
			settle(time.Minute)
			stop()
			reg.exactlyOnce(t, 0, l)
			if len(reg.bad) != 0 {
				t.Errorf("beats were given up: %v", reg.bad)
			}
		})
	}
}

// Two owners of one partition, each sure of it: batches are fenced, and the clock doesn't run at double speed.
func TestTwoOwnersAreFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		a, b := testOwner(t, testConfig(reg), 0, l), testOwner(t, testConfig(reg), 0, l)
		stopA, stopB := a.start(), b.start()
		start := time.Now()
		for i := range 3000 {
			l.beat("orders", fmt.Sprint(i%10), int64(i))
			time.Sleep(10 * time.Millisecond)
		}
		settle(2 * time.Second)
		reg.exactlyOnce(t, 0, l)
		if c := reg.clock(0); c > time.Since(start) {
			t.Errorf("clock went %v in %v", c, time.Since(start))
		}
		if metricValue(a.met.fenced)+metricValue(b.met.fenced) == 0 {
			t.Error("nobody was fenced")
		}
		stopB()
		before, at := reg.clock(0), time.Now()
		settle(20 * time.Second)
		if got := reg.clock(0) - before; got < time.Since(at)-3*time.Second {
			t.Errorf("the one that is left moved the clock by %v in %v", got, time.Since(at))
		}
		stopA()
		reg.exactlyOnce(t, 0, l)
	})
}

// A batch whose offset is no longer the stream's is dropped, not applied.
func TestFencedOwnerDropsItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		o := testOwner(t, testConfig(reg), 0, l)
		l.beat("orders", "a", 1)
		first := true
		reg.before = func(part int32, b registry.Batch) error {
			if first && len(b.Records) > 0 { // another owner is faster with the very same records
				first = false
				if _, err := reg.commit(part, b); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		stop := o.start()
		settle(3 * time.Second)
		l.beat("orders", "a", 2)
		settle(time.Second)
		stop()
		reg.exactlyOnce(t, 0, l)
		if metricValue(o.met.fenced) != 1 || reg.seq("orders/a") != 2 {
			t.Errorf("fenced %v times, last seq %d", metricValue(o.met.fenced), reg.seq("orders/a"))
		}
	})
}

func TestRecreatedTopicAndRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		o := testOwner(t, testConfig(reg), 0, l)
		stop := o.start()
		for i := range 100 {
			l.beat("orders", "a", int64(i))
		}
		settle(time.Second)
		l.recreate()
		l.beat("orders", "a", 1000)
		settle(time.Second)
		if reg.seq("orders/a") != 1000 || len(reg.restarts()) != 1 || !strings.Contains(reg.restarts()[0], "created anew") {
			t.Errorf("seq %d, events %q", reg.seq("orders/a"), reg.restarts())
		}
		stop()

		for i := range 100 {
			l.beat("orders", "a", int64(2000+i))
		}
		kept := l.end() - 10
		l.trim(kept)
		stop = testOwner(t, testConfig(reg), 0, l).start()
		settle(time.Second)
		stop()
		if reg.seq("orders/a") != 2099 || len(reg.events) != 2 || !strings.Contains(reg.events[1], "retention") {
			t.Errorf("seq %d, events %q", reg.seq("orders/a"), reg.events)
		}
		if metricValue(o.met.fenced) != 0 {
			t.Error("it was fenced by itself")
		}
		if metricValue(o.met.restarts) != 1 { // the second was another owner's
			t.Errorf("restarts: %v", metricValue(o.met.restarts))
		}
	})
}

// A transaction that was committed although it failed is seen to be, and not taken for another owner's.
func TestCommittedAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		n := 0
		reg.after = func(int32, registry.Batch) error {
			if n++; n%2 == 1 {
				return context.DeadlineExceeded
			}
			return nil
		}
		o := testOwner(t, testConfig(reg), 0, l)
		stop := o.start()
		for i := range 50 {
			l.beat("orders", "a", int64(i+1))
			settle(100 * time.Millisecond)
		}
		settle(5 * time.Second)
		stop()
		reg.exactlyOnce(t, 0, l)
		if metricValue(o.met.fenced) != 0 || reg.seq("orders/a") != 50 || n < 10 {
			t.Errorf("fenced %v times, seq %d, %d transactions", metricValue(o.met.fenced), reg.seq("orders/a"), n)
		}
	})
}

// A connection that breaks in the middle of a response costs nothing of what came before.
func TestBrokenResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		o := testOwner(t, testConfig(reg), 0, l)
		o.dial = func(ctx context.Context) (source, error) {
			s, err := l.dial(ctx)
			return tornSource{s}, err
		}
		stop := o.start()
		for i := range 200 {
			l.beat("orders", "a", int64(i+1))
			l.beat("orders", "b", int64(i+1))
			settle(20 * time.Millisecond)
		}
		settle(2 * time.Minute)
		stop()
		reg.exactlyOnce(t, 0, l)
		if metricValue(o.met.fenced) != 0 || reg.seq("orders/b") != 200 {
			t.Errorf("fenced %v times, seq %d", metricValue(o.met.fenced), reg.seq("orders/b"))
		}
	})
}

// tornSource breaks after two records of each response.
type tornSource struct{ source }

func (s tornSource) fetch(pos int64, minBytes int, wait time.Duration, each func(raw)) (next, end int64, err error) {
	n := 0
	next = pos
	_, end, err = s.source.fetch(pos, minBytes, wait, func(r raw) {
		if n++; n <= 2 {
			next = r.offset + 1
			each(r)
		}
	})
	if err == nil && n > 2 {
		return next, end, errors.New("connection reset by peer")
	}
	return next, end, err
}

// What the broker can't give or the client can't read costs that offset, not the stream.
func TestUnreadableOffsetsAreSteppedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		o := testOwner(t, testConfig(reg), 0, l)
		o.dial = func(ctx context.Context) (source, error) {
			s, err := l.dial(ctx)
			return brokenSource{s, 10, 14}, err
		}
		for i := range 30 {
			l.beat("orders", "a", int64(i))
		}
		stop := o.start()
		settle(10 * time.Second)
		stop()
		reg.exactlyOnce(t, 0, l)
		if reg.bad[registry.RejectedUnreadable] != 5 || reg.seq("orders/a") != 29 {
			t.Errorf("bad %v, seq %d", reg.bad, reg.seq("orders/a"))
		}
	})
}

// A broker that goes away after an offset was given up is asked at the usual pace.
func TestBrokerAwayAfterAnUnreadableOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		o := testOwner(t, testConfig(reg), 0, l)
		for i := range 20 {
			l.beat("orders", "a", int64(i))
		}
		dials := 0
		o.dial = func(ctx context.Context) (source, error) {
			switch dials++; {
			case dials <= stuckAttempts:
				s, err := l.dial(ctx)
				return brokenSource{s, 10, 14}, err
			case dials > 1000: // a loop without a pause would let no time pass
				<-ctx.Done()
			}
			return nil, errAway
		}
		stop := o.start()
		settle(10 * time.Second)
		stop()
		if n, _ := reg.refused(registry.RejectedUnreadable); n != 1 || dials > 100 {
			t.Errorf("%d offsets given up, %d dials in 10 s", n, dials)
		}
	})
}

// brokenSource has a batch from..to that can't be parsed.
type brokenSource struct {
	source
	from, to int64
}

func (b brokenSource) fetch(pos int64, minBytes int, wait time.Duration, each func(raw)) (next, end int64, err error) {
	switch {
	case pos >= b.from && pos <= b.to:
		return pos, b.to + 10, fmt.Errorf("fetch: %w", errUnreadable)
	case pos > b.to:
		return b.source.fetch(pos, minBytes, wait, each)
	}
	next, end, err = pos, 0, nil
	_, end, err = b.source.fetch(pos, minBytes, wait, func(r raw) {
		if r.offset < b.from {
			each(r)
			next = r.offset + 1
		}
	})
	return next, end, err
}
