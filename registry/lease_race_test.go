package registry

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// A holder renews and raises while its lease runs out and another takes it. Nothing that it does after that is done, and
// nothing that it did is undone: the epochs rise.
func TestLostLeaseStaysLost(t *testing.T) {
	onEach(t, Options{Attempts: 40}, func(t *testing.T, s *Store) {
		for range 40 {
			ctx, lost := context.Background(), make(chan Lease, 1)
			a, ok, err := s.AcquireLease(ctx, "confgen", "a", time.Duration(1+rand.N(5))*time.Millisecond)
			if err != nil || !ok {
				t.Fatalf("a gets no lease: %v", err)
			}
			var held time.Time // when the last thing that a could do began
			var wg sync.WaitGroup
			wg.Go(func() { held = keepOn(t, s, a, lost) })
			var b Lease
			for ok := false; !ok; {
				if b, ok, err = s.AcquireLease(ctx, "confgen", "b", time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			taken := time.Now()
			wg.Wait()
			if last := <-lost; b.Epoch <= last.Epoch || held.After(taken) {
				t.Errorf("b took epoch %d; a had %d and went on for %v", b.Epoch, last.Epoch, held.Sub(taken))
			}
			if err := s.held(ctx, s.db, b, ""); err != nil {
				t.Errorf("b's lease: %v", err)
			}
			if err := s.ReleaseLease(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// keepOn renews and raises a lease until it was refused some times. It gives the lease that it had, and when the last call
// that was not refused began.
func keepOn(t *testing.T, s *Store, l Lease, lost chan<- Lease) (held time.Time) {
	refused := 0
	for i := 0; refused < 5; i++ {
		began := time.Now()
		var err error
		if i%3 == 2 {
			l, err = s.RaiseEpoch(context.Background(), l, l.Epoch+1+rand.N(int64(2)))
		} else {
			err = s.RenewLease(context.Background(), l)
		}
		switch {
		case errors.Is(err, ErrFenced):
			refused++
		case err != nil:
			t.Error(err)
			refused = 5
		case refused > 0:
			t.Error("a lost lease is held again")
			fallthrough
		default:
			held = began
		}
		time.Sleep(rand.N(2 * l.TTL))
	}
	lost <- l
	return held
}

// Leases that run out at once, and many who take them: each epoch is one holder's.
func TestAnEpochHasOneHolder(t *testing.T) {
	onEach(t, Options{Attempts: 1000}, func(t *testing.T, s *Store) {
		var mu sync.Mutex
		taken := map[int64]string{}
		var wg sync.WaitGroup
		for _, holder := range []string{"a", "b", "c", "d"} {
			wg.Go(func() {
				for mine := 0; mine < 30; {
					l, ok, err := s.AcquireLease(context.Background(), "confgen", holder, time.Microsecond)
					if err != nil {
						t.Error(err)
						return
					}
					if !ok {
						continue
					}
					mine++
					mu.Lock()
					if other := taken[l.Epoch]; other != "" {
						t.Errorf("epoch %d is %s's and %s's", l.Epoch, other, holder)
					}
					taken[l.Epoch] = holder
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	})
}

// What was seen of a lease may be over when it is acted upon.
func TestLeaseAsSeenBefore(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		ctx, a := context.Background(), mustLease(t, s, "a")
		// It was seen as run out, and a late renewal came in between.
		if ok, err := s.takeLease(ctx, Lease{Name: a.Name, Holder: "b", Epoch: a.Epoch + 1, TTL: time.Hour}, a.Epoch); ok || err != nil {
			t.Errorf("b took a lease that a holds: %v", err)
		}
		again := mustLease(t, s, "a")
		if again.Epoch <= a.Epoch {
			t.Errorf("epoch %d after %d", again.Epoch, a.Epoch)
		}
		if err := s.RenewLease(ctx, a); !errors.Is(err, ErrFenced) {
			t.Errorf("renewed in an epoch that is over: %v", err)
		}
		if _, err := s.RaiseEpoch(ctx, a, again.Epoch+1); !errors.Is(err, ErrFenced) {
			t.Errorf("raised from an epoch that is over: %v", err)
		}
		if err := s.ReleaseLease(ctx, a); err != nil {
			t.Fatal(err)
		}
		if err := s.RenewLease(ctx, again); err != nil {
			t.Errorf("the release of an epoch that is over: %v", err)
		}
	})
}
