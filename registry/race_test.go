package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Two owners who both believe in the partition: each batch is applied once, by whoever comes first.
func TestTwoOwnersOfOnePartition(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		started(t, s, 0)
		const batches, size = 40, 5
		var mu sync.Mutex
		var applied int
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				st := started(t, s, 0)
				for st.State().NextOffset < batches*size {
					from := st.State().NextOffset
					b := batchOf(st, sighted("a", "x", from+1, 1), sighted("a", "x", from+2, 1), sighted("a", "x", from+3, 1),
						sighted("a", "x", from+4, 1), sighted("a", "x", from+5, 1))
					res, err := st.Apply(context.Background(), b)
					switch {
					case errors.Is(err, ErrFenced):
						st = started(t, s, 0)
					case err != nil:
						t.Errorf("apply: %v", err)
						return
					default:
						mu.Lock()
						applied += res.Applied
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		if applied != batches*size {
			t.Errorf("%d sightings applied by both, want %d", applied, batches*size)
		}
	})
}

// Two partitions whose instances claim the same addresses at the same time: one owner each, and no two routable
// instances ever share an address.
func TestRacingClaims(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		const addrs, rounds = 6, 25
		var wg sync.WaitGroup
		for part := range int32(2) {
			st := started(t, s, part)
			wg.Go(func() {
				for round := range int64(rounds) {
					var list []*Sighting
					for a := range addrs {
						x := sighted(fmt.Sprintf("svc%d", part), fmt.Sprintf("i%d", a), 1, a)
						x.Incarnation = round + 1 // a new incarnation claims
						list = append(list, x)
					}
					if _, err := st.Apply(context.Background(), batchOf(st, list...)); err != nil {
						t.Errorf("partition %d: %v", part, err)
						return
					}
				}
			})
		}
		wg.Wait()
		checkOwners(t, s)
		snap, err := s.Snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(snap.Instances) != addrs {
			t.Errorf("%d routable instances at %d addresses", len(snap.Instances), addrs)
		}
	})
}

// checkOwners finds routable instances that do not own their address.
func checkOwners(t *testing.T, s *Store) {
	t.Helper()
	var wrong []string
	err := s.db.Select(&wrong, `SELECT CONCAT(i.service, '/', i.iid) FROM instance i
		LEFT JOIN address a ON a.instance = i.id AND a.addr = CONCAT(i.ip, ':', i.port)
		WHERE i.liveness IN ('live', 'unproven') AND a.addr IS NULL AND i.service NOT LIKE 'upstrand-%'`)
	if err != nil {
		t.Fatal(err)
	}
	if len(wrong) > 0 {
		t.Errorf("routable without owning their address: %v", wrong)
	}
}

// Four streams in which the same instances beat, each in all of them: the highest seq of each survives, whatever the order
// in which the transactions came, and readers of Changes missed nothing.
func TestOverlappingStreams(t *testing.T) {
	onEach(t, Options{Attempts: 40}, func(t *testing.T, s *Store) {
		const streams, instances, rounds = 4, 60, 30
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		folded := make(chan map[int64]Instance)
		go follow(ctx, t, s, folded)
		highest := make([]int64, instances)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for part := range int32(streams) {
			st := started(t, s, part)
			rnd := rand.New(rand.NewPCG(uint64(part), 7))
			wg.Go(func() {
				for range rounds {
					var list []*Sighting
					for _, i := range rnd.Perm(instances)[:instances/2] {
						mu.Lock()
						highest[i] += 1 + rnd.Int64N(2)
						x := sighted("svc", fmt.Sprintf("i%02d", i), highest[i], i)
						mu.Unlock()
						if x.Attrs.Weight = 1 + rnd.IntN(3); rnd.IntN(2) == 0 {
							x.Attrs.Weight = 1 // half of them are steady
						}
						list = append(list, x)
					}
					if _, err := st.Apply(ctx, batchOf(st, list...)); err != nil {
						t.Errorf("partition %d: %v", part, err)
						return
					}
				}
			})
		}
		wg.Wait()
		for i := range instances {
			var seq int64
			err := s.db.Get(&seq, `SELECT h.seq FROM hot h JOIN instance i ON i.id = h.id WHERE i.iid = ?`, fmt.Sprintf("i%02d", i))
			if err != nil || seq != highest[i] {
				t.Errorf("i%02d stands at seq %d, sent were up to %d: %v", i, seq, highest[i], err)
			}
		}
		checkOwners(t, s)
		cancel()
		got := <-folded
		snap, err := s.Snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range snap.Instances {
			if got[want.DenseID].Attrs.Weight != want.Attrs.Weight || got[want.DenseID].Revision != want.Revision {
				t.Errorf("the follower holds %+v, the registry %+v", got[want.DenseID], want)
			}
		}
	})
}

// follow folds Changes until the context ends, then once more.
func follow(ctx context.Context, t *testing.T, s *Store, out chan<- map[int64]Instance) {
	held := map[int64]Instance{}
	at := int64(0)
	for last := false; ; {
		snap, err := s.Changes(context.Background(), at)
		if err != nil {
			t.Errorf("changes: %v", err)
		}
		for _, i := range snap.Instances {
			held[i.DenseID] = i
		}
		at = snap.Revision
		if last {
			out <- held
			return
		}
		last = ctx.Err() != nil
	}
}

// A beat on the slow path reads the hot row locked: a steady beat of another partition, which is newer and about to be
// committed, is not lost under it.
func TestSlowPathWaitsForSteadyBeats(t *testing.T) {
	s, err := Open(openMySQL(t), MySQL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, st := context.Background(), started(t, s, 0)
	mustApply(t, st, batchOf(st, sighted("a", "1", 1, 1)))
	other, err := s.db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback() }()
	if _, err := other.Exec(`UPDATE hot SET part = 1, seq = 50 WHERE id = 1`); err != nil {
		t.Fatal(err)
	}
	changed := sighted("a", "1", 10, 1)
	changed.Attrs.Weight = 3
	done := make(chan Result)
	go func() {
		res, err := st.Apply(ctx, batchOf(st, changed))
		if err != nil {
			t.Errorf("apply: %v", err)
		}
		done <- res
	}()
	// InnoDB shows the same picture for as long as it is asked again within 100 ms.
	for waiting, end := 0, time.Now().Add(20*time.Second); waiting == 0; time.Sleep(150 * time.Millisecond) {
		if time.Now().After(end) {
			t.Error("the slow path does not wait for the row's lock")
			break
		}
		if err := s.db.Get(&waiting, `SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	if res := <-done; res.Applied != 0 || res.Ignored[IgnoredReplayed] != 1 {
		t.Errorf("an overtaken beat: %+v", res)
	}
	var seq int64
	if err := s.db.Get(&seq, `SELECT seq FROM hot`); err != nil || seq != 50 {
		t.Errorf("the row stands at seq %d, want 50: %v", seq, err)
	}
}
