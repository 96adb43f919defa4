package confgen

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// TestForgedReportsDoNotHoldPublishing: reports of agents are beats, so somebody may go on claiming ever more.
func TestForgedReportsDoNotHoldPublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		p := w.start()
		defer p.end()
		w.run(2 * time.Second)
		claim := topology.Pair{Epoch: 100, Version: 1000}
		forge := func() {
			claim.Epoch, claim.Version = claim.Epoch+7, claim.Version+1000
			w.db.with(func() { w.db.agents["forged"] = claim })
		}
		held := 0
		for i := range 20 {
			forge()
			if i == 10 { // what makes the leader read everything again must not make it hold again
				p.setFault(func(_ int, op string) mishap {
					if op != "insert" {
						return pass
					}
					p.fault = nil // p.mu is held
					forge()
					return failBefore
				})
			}
			w.db.join("orders/b" + string(rune('a'+i)))
			w.run(2 * time.Second)
			if p.g.Note() != "" {
				held++
			}
		}
		// One hold of one stale limit (3 s) is right: it might be a restored database.
		if n := len(slices.DeleteFunc(w.db.kinds(), func(k string) bool { return k != NoteRestored })); n != 1 || held > 3 {
			t.Errorf("%d holds, seen in %d of 20 looks", n, held)
		}
		if n := count(p.g.metrics.failures.WithLabelValues("begin")); n != 2 {
			t.Errorf("everything was read again %v times, once for the hold and once for the failure is enough", n)
		}
		w.converged()
		if c := w.tp.lastApplied(); c.Epoch <= claim.Epoch || c.Version <= claim.Version {
			t.Errorf("commit %s is not above %s", c.Pair(), claim)
		}
	})
}

// TestRestoredAndWipedHoldsOnce: only the agents know of what was; and when the database goes back once more under the
// same leader, it counts again.
func TestRestoredAndWipedHoldsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		w.db.with(func() { w.db.agents["p1"] = topology.Pair{Epoch: 9, Version: 70} })
		p := w.start()
		defer p.end()
		w.run(time.Second)
		if w.commits() != 0 || p.g.Note() == "" {
			t.Fatalf("%d commits, note %q: what the restored rows say was published", w.commits(), p.g.Note())
		}
		w.run(5 * time.Second)
		w.converged()
		w.db.with(func() { w.db.agents["p1"] = w.tp.observer.Applied().Pair() })
		backup := w.db.clone()
		w.db.join("orders/a2")
		w.run(time.Second)
		w.db.with(func() {
			backup.holder, backup.epoch, backup.expires = w.db.holder, w.db.epoch, w.db.expires
			backup.agents["p1"] = topology.Pair{Epoch: 9, Version: 200}
		})
		w.tp.recreate()
		w.db.restore(backup)
		w.run(time.Second)
		if p.g.Note() == "" {
			t.Error("no hold for a database that went back in this term")
		}
		w.run(5 * time.Second)
		w.converged()
	})
}

func TestImplausibleReports(t *testing.T) {
	for name, tc := range map[string]struct {
		says topology.Pair
		want topology.Pair // of the commit
	}{
		"epoch at the end":    {topology.Pair{Epoch: math.MaxInt64, Version: 5}, topology.Pair{Epoch: 1, Version: 1}},
		"version at the end":  {topology.Pair{Epoch: 3, Version: math.MaxInt64}, topology.Pair{Epoch: 1, Version: 1}},
		"epoch too far":       {topology.Pair{Epoch: 2 + farEpoch, Version: 5}, topology.Pair{Epoch: 1, Version: 1}},
		"version too far":     {topology.Pair{Epoch: 3, Version: 2 + farVersion}, topology.Pair{Epoch: 1, Version: 1}},
		"just near enough":    {topology.Pair{Epoch: 1 + farEpoch, Version: farVersion}, topology.Pair{Epoch: 2 + farEpoch, Version: 1 + farVersion}},
		"nothing out of it":   {topology.Pair{Epoch: -4, Version: -4}, topology.Pair{Epoch: 1, Version: 1}},
		"as high as we are":   {topology.Pair{Epoch: 0, Version: 0}, topology.Pair{Epoch: 1, Version: 1}},
		"only the version is": {topology.Pair{Epoch: 0, Version: 40}, topology.Pair{Epoch: 1, Version: 41}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.db.agents["p1"] = tc.says
				p := w.start()
				defer p.end()
				w.run(6 * time.Second)
				if c := w.tp.lastApplied(); c.Pair() != tc.want {
					t.Errorf("commit %s, want %s", c.Pair(), tc.want)
				}
			})
		})
	}
}

// TestStrayRecords: one record of somebody else on the topic, with numbers that can't be counted above, must not stop
// publishing, neither under a leader nor before one.
func TestStrayRecords(t *testing.T) {
	const top = topology.MaxCount
	for name, pair := range map[string]topology.Pair{
		"the end of int64":              {Epoch: math.MaxInt64, Version: math.MaxInt64},
		"version, end of int64":         {Epoch: 1, Version: math.MaxInt64},
		"just out of range":             {Epoch: top + 1, Version: 1},
		"negative":                      {Epoch: -1, Version: -1},
		"highest version there is":      {Epoch: 1, Version: top},
		"version, too high to go above": {Epoch: 1, Version: highestFollowed + 1},
		"version, high":                 {Epoch: 1, Version: highestFollowed},
		"epoch, high":                   {Epoch: highestFollowed - 1, Version: 7},
	} {
		for _, key := range []string{"service/orders", "service/zzz", "route//orders", topology.KeyCommit} {
			t.Run(name+"/"+key, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.db.join("orders/a1")
					p := w.start()
					w.run(2 * time.Second)
					w.tp.write(topology.Message{Record: topology.Record{Key: key, Value: []byte(`{"name":"zzz","instances":[]}`)}, Pair: pair})
					w.db.join("orders/a2")
					w.run(10 * time.Second) // long enough for a hold
					w.converged()
					p.end()
					p = w.start()
					defer p.end()
					w.run(2 * time.Second)
					w.db.join("orders/a3")
					w.run(time.Second)
					w.converged()
					if v := w.db.newest().Version; v > highestFollowed+4 {
						t.Errorf("version %d", v)
					}
					if err := p.g.Ready(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestNotReadyWhenStuck: a leader that can't publish says so after a while, until it can again.
func TestNotReadyWhenStuck(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*world)
		mend  func(*world)
		says  string
	}{
		"the topic can't be reached": {func(w *world) { w.tp.with(func() { w.tp.down = errors.New("broker is away") }) },
			func(w *world) { w.tp.with(func() { w.tp.down = nil }) }, "broker is away"},
		"an epoch that can't be gone above": {func(w *world) {
			w.tp.write(topology.Message{Record: topology.Record{Key: "service/x", Value: []byte("x")}, Pair: topology.Pair{Epoch: topology.MaxCount, Version: 1}})
		}, func(w *world) { w.tp.recreate() }, "let it be made anew"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.db.join("orders/a1")
				p := w.start(func(c *Config) { c.StuckAfter = 10 * time.Second })
				defer p.end()
				w.run(2 * time.Second)
				tc.spoil(w)
				w.run(9 * time.Second)
				if err := p.g.Ready(); err != nil {
					t.Errorf("too early: %v", err)
				}
				w.run(8 * time.Second)
				if err := p.g.Ready(); err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "not been able to publish for") {
					t.Errorf("ready: %v", err)
				}
				tc.mend(w)
				w.run(5*time.Second + slowest)
				if err := p.g.Ready(); err != nil {
					t.Errorf("after it was mended: %v", err)
				}
				w.converged()
			})
		})
	}
}
