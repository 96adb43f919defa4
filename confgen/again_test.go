package confgen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// source fails Changes as it is told, and notes how long a Snapshot may take.
type source struct {
	Source
	mu        sync.Mutex
	fail      error
	snapshots []time.Duration
}

func (s *source) set(fail error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func (s *source) Changes(ctx context.Context, since int64) (registry.Snapshot, error) {
	s.mu.Lock()
	fail := s.fail
	s.mu.Unlock()
	if errors.Is(fail, context.DeadlineExceeded) {
		<-ctx.Done()
	}
	if fail != nil {
		return registry.Snapshot{}, fail
	}
	return s.Source.Changes(ctx, since)
}

func (s *source) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, _ := ctx.Deadline()
	s.snapshots = append(s.snapshots, time.Until(end))
	return s.Source.Snapshot(ctx)
}

// Only changes that can't be had any more make it read everything, and it has the time for that.
func TestReadsEverythingOnlyWhenItMust(t *testing.T) {
	for name, tc := range map[string]struct {
		fail error
		must bool
	}{
		"a failure":         {errCut, false},
		"too old":           {fmt.Errorf("known are 3 to 4: %w", registry.ErrTooOld), true},
		"too much for once": {context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.db.join("orders/a1")
				src := &source{}
				p := w.start(func(c *Config) { src.Source, c.Source = c.Source, src })
				settle(time.Second)
				src.set(tc.fail)
				w.db.join("orders/a2")
				settle(3 * time.Second)
				if got := len(src.snapshots) > 1; got != tc.must {
					t.Errorf("%d snapshots", len(src.snapshots))
				}
				for _, d := range src.snapshots {
					if d != whole*time.Second {
						t.Errorf("a snapshot had %s", d)
					}
				}
				src.set(nil)
				settle(3 * time.Second)
				w.converged()
				p.end()
			})
		})
	}
}

// unsure does its work and then can't tell.
type unsure struct {
	Leases
	Versions
	renewals, inserts atomic.Int32 // so many times
	mu                sync.Mutex
	left              []time.Duration
}

func (u *unsure) RenewLease(ctx context.Context, l registry.Lease) error {
	err := u.Leases.RenewLease(ctx, l)
	if err == nil && u.renewals.Add(-1) >= 0 {
		return fmt.Errorf("renew: %w", registry.ErrReload)
	}
	return err
}

func (u *unsure) InsertVersion(ctx context.Context, l registry.Lease, v registry.Version, changed []registry.TopologyRecord) error {
	end, _ := ctx.Deadline()
	u.mu.Lock()
	u.left = append(u.left, time.Until(end))
	u.mu.Unlock()
	err := u.Versions.InsertVersion(ctx, l, v, changed)
	if err == nil && u.inserts.Add(-1) >= 0 {
		return fmt.Errorf("insert: %w", registry.ErrReload)
	}
	return err
}

func (u *unsure) into(c *Config) {
	u.Leases, c.Leases = c.Leases, u
	u.Versions, c.Versions = c.Versions, u
}

// A commit of which nothing is known is no lost lease: the state is read again in the same term.
func TestUnknownCommitKeepsTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		u := &unsure{}
		u.renewals.Store(2)
		log := &logged{}
		p := w.start(u.into, log.into)
		settle(2 * time.Second)
		u.inserts.Store(1)
		w.db.join("orders/a2")
		settle(3 * time.Second)
		if u.renewals.Load() > 0 || u.inserts.Load() > 0 {
			t.Fatal("nothing was unsure")
		}
		if log.count("lost the lead") != 0 || !p.g.Leader() || w.tp.lastApplied().Epoch != 1 {
			t.Errorf("%s", &log.text)
		}
		w.converged()
		p.end()
	})
}

// What takes long to write begins with a new lease.
func TestALargeVersionHasTheWholeLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		u := &unsure{}
		p := w.start(u.into)
		settle(1250 * time.Millisecond)
		for i := range manyRecords {
			w.db.join(fmt.Sprintf("s%03d/a", i))
		}
		settle(time.Second)
		if len(u.left) != 2 || u.left[1] != 900*time.Millisecond {
			t.Errorf("left of a lease of 1 s: %v", u.left)
		}
		w.converged()
		p.end()
	})
}

// A repeated commit says when its version was made, whoever repeats it.
func TestCommitSaysWhenTheVersionWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		for range 2 {
			p := w.start()
			settle(5 * time.Second)
			p.end()
		}
		made := time.UnixMicro(w.db.newest().CreatedAt)
		commits := 0
		w.tp.with(func() {
			for _, m := range w.tp.messages {
				if m.Key != topology.KeyCommit {
					continue
				}
				commits++
				if c, err := topology.DecodeCommit(m.Value); err != nil || !c.At.Equal(made) {
					t.Errorf("commit at %s, want %s (%v)", c.At, made, err)
				}
			}
		})
		if commits < 6 || w.db.newest().Version != 1 {
			t.Errorf("%d commits of version %d", commits, w.db.newest().Version)
		}
	})
}

// Reading everything is tried again ever more slowly.
func TestReadsEverythingAgainMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		p := w.start()
		settle(500 * time.Millisecond)
		reads, fail := 0, true
		p.setFault(func(n int, op string) mishap {
			if op == "latest" && fail {
				reads++
				return failBefore
			}
			return pass
		})
		w.db.join("orders/a2")
		settle(time.Minute)
		p.mu.Lock()
		reads = 0
		p.mu.Unlock()
		settle(time.Minute)
		if reads < 4 || reads > 7 {
			t.Errorf("%d tries in a minute, want one each %s", reads, slowest)
		}
		p.mu.Lock()
		fail = false
		p.mu.Unlock()
		settle(slowest + time.Second)
		w.converged()
		p.end()
	})
}

// Notes become events once in a process, however often it leads, and after the first publishing.
func TestNotesAreToldAfterPublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		w.db.put("orders/bad", func(in *registry.Instance) { in.Liveness, in.Attrs.Port = registry.Live, 0 })
		var ops []string
		w.fault = func(n int, op string) mishap {
			if op == "event" || op == "produce" {
				ops = append(ops, op)
			}
			return pass
		}
		p := w.start()
		settle(1500 * time.Millisecond)
		w.db.with(func() { w.db.holder = "somebody" })
		settle(5 * time.Second)
		if w.tp.lastApplied().Epoch < 2 {
			t.Fatal("there was no second term")
		}
		if got := strings.Join(w.db.kinds(), " "); got != NoteBadInstance {
			t.Errorf("events: %s", got)
		}
		if ops[0] != "produce" {
			t.Errorf("%v", ops)
		}
		p.end()
	})
}

// A new leader's first version tells what changed, not what was there before.
func TestCauseAfterAChangeOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1", "billing/b1")
		w.db.put("orders/a2", func(in *registry.Instance) { in.Liveness, in.Attrs.Zone = registry.Live, "east" }) // over an upstrand
		a := w.start()
		settle(time.Second)
		a.end()
		w.db.join("orders/a3")
		b := w.start()
		settle(time.Second)
		if v := w.db.newest(); v.Version != 2 || v.Cause != "orders/a3 joined" {
			t.Errorf("version %d: %s", v.Version, v.Cause)
		}
		w.converged()
		b.end()
	})
}
