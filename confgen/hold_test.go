package confgen

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// pulse moves every stream clock and takes every stream to the end of its log, as listeners do.
func (w *world) pulse(d time.Duration) {
	w.tp.with(func() {
		for p := range w.tp.ends {
			w.tp.ends[p]++
		}
	})
	ends, _ := w.tp.HeartbeatEnds(w.t.Context())
	w.db.with(func() {
		for p, end := range ends {
			s := w.db.streams[p]
			s.Part, s.NextOffset = p, end
			s.Clock += d
			w.db.streams[p] = s
		}
	})
}

// run lets d pass with pulses each 500 ms.
func (w *world) run(d time.Duration) {
	for range d / (500 * time.Millisecond) {
		w.pulse(500 * time.Millisecond)
		settle(500 * time.Millisecond)
	}
}

func gauge(g prometheus.Gauge) float64 {
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		return -1
	}
	return m.GetGauge().GetValue()
}

func count(c prometheus.Counter) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		return -1
	}
	return m.GetCounter().GetValue()
}

func (w *world) commits() (n int) {
	w.tp.with(func() { n = w.tp.commits })
	return n
}

func TestRestoredDatabase(t *testing.T) {
	for _, tc := range []struct {
		name   string
		leader string // what the leader does while the database is restored
	}{{"under a living leader", "lives"}, {"under a stopped leader", "ends"}, {"and the leader is killed in the hold", "dies in the hold"}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.tp.ends = map[int32]int64{0: 0, 1: 0}
				w.db.join("orders/a1", "orders/a2")
				reg := prometheus.NewRegistry()
				p := w.start(func(c *Config) { c.Registerer = reg })
				w.run(2 * time.Second)
				backup := w.db.clone()
				w.run(2 * time.Second)
				w.db.leave("orders/a1") // its address may belong to another soon
				w.run(time.Second)
				w.db.join("billing/b1")
				w.run(time.Second)
				if v := w.db.newest().Version; v != 3 {
					t.Fatalf("version %d", v)
				}
				if tc.leader == "ends" {
					p.end()
				}
				w.db.restore(backup)
				if tc.leader == "ends" {
					p = w.start()
				}
				// The listeners are at work, but have not found orders/a1 silent yet.
				w.run(1500 * time.Millisecond)
				before := w.commits()
				last := w.tp.lastApplied()
				if tc.leader == "dies in the hold" {
					p.kill()
					p = w.start()
					w.run(1500 * time.Millisecond)
				}
				if !p.g.Leader() || p.g.Ready() != nil || !strings.Contains(p.g.Note(), "restored") {
					t.Errorf("leads %v, ready %v, note %q", p.g.Leader(), p.g.Ready(), p.g.Note())
				}
				if tc.leader == "lives" && (gauge(p.g.metrics.holding) != 1 || gauge(p.g.metrics.holdWaiting) != 2) {
					t.Error("metrics do not tell of the hold")
				}
				// Clocks that stand still hold for ever.
				settle(10 * time.Minute)
				w.run(1 * time.Second)
				if w.commits() != before || len(w.db.versions) != 1 {
					t.Errorf("something was published in the hold: %d commits, %d versions", w.commits()-before, len(w.db.versions)-1)
				}
				w.db.leave("orders/a1") // found silent
				w.run(4 * time.Second)
				w.converged()
				c := w.tp.lastApplied()
				if c.Version <= last.Version || c.Epoch <= last.Epoch {
					t.Errorf("commit %s after %s", c.Pair(), last.Pair())
				}
				for _, c := range w.tp.applied[slices.IndexFunc(w.tp.applied, func(c topology.Commit) bool { return c.Version == 3 }):] {
					if c.Version == 4 && c.Digest == w.tp.applied[0].Digest {
						t.Error("the restored rows were published")
					}
				}
				if p.g.Note() != "" || !slices.Contains(w.db.kinds(), NoteRestored) || !slices.Contains(w.db.kinds(), NoteResumed) {
					t.Errorf("note %q, events %v", p.g.Note(), w.db.kinds())
				}
				if !strings.HasPrefix(w.db.newest().Cause, "above version 3, which the topic or an agent has") {
					t.Errorf("cause %q", w.db.newest().Cause)
				}
				// And on as usual.
				w.db.join("orders/a9")
				w.run(time.Second)
				w.converged()
				p.end()
			})
		})
	}
}

// TestRestoredWithoutAPause is a restore so quick that the lease holds: only the registry's revision, or the newest
// version, tells.
func TestRestoredWithoutAPause(t *testing.T) {
	for name, more := range map[string]int{"the revision goes back": 0, "the revision goes on": 6} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.db.join("orders/a1", "orders/a2")
				p := w.start()
				defer p.end()
				w.run(2 * time.Second)
				backup := w.db.clone()
				w.db.leave("orders/a1")
				w.run(time.Second)
				w.db.with(func() { backup.holder, backup.epoch, backup.expires = w.db.holder, w.db.epoch, w.db.expires })
				w.db.restore(backup)
				for i := range more {
					w.db.join(fmt.Sprintf("other/%d", i))
				}
				w.run(time.Second)
				if p.g.Note() == "" || len(w.db.versions) != 1 {
					t.Errorf("note %q, %d versions", p.g.Note(), len(w.db.versions))
				}
				w.db.leave("orders/a1")
				w.run(5 * time.Second)
				w.converged()
			})
		})
	}
}

// TestRestoredToTheSameVersion loses only epochs: nothing that could revive the dead is in such a copy, but the agents
// must not refuse what comes, nor two leaders have written in one epoch.
func TestRestoredToTheSameVersion(t *testing.T) {
	for lost := range int64(4) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.db.join("orders/a1")
			p := w.start()
			w.run(2 * time.Second)
			backup := w.db.clone()
			for range lost {
				p.end()
				p = w.start()
				w.run(time.Second)
			}
			p.end()
			w.db.restore(backup)
			w.run(2 * time.Second) // the lease in the copy runs out
			p = w.start()
			defer p.end()
			w.run(6 * time.Second)
			w.converged()
			w.db.join("orders/a2")
			w.run(time.Second)
			w.converged()
			if c := w.tp.lastApplied(); c.Epoch <= 1+lost {
				t.Errorf("epoch %d after %d", c.Epoch, 1+lost)
			}
		})
	}
}

func TestAgentsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		w.db.agents["p1"] = topology.Pair{Epoch: 40, Version: 900} // it lives from what it has on disk; all else is new
		p := w.start()
		defer p.end()
		w.run(2 * time.Second)
		if w.commits() != 0 || p.g.Note() == "" {
			t.Errorf("%d commits, note %q", w.commits(), p.g.Note())
		}
		w.run(4 * time.Second)
		w.converged()
		if c := w.tp.lastApplied(); c.Version <= 900 || c.Epoch <= 40 {
			t.Errorf("commit %s", c.Pair())
		}
		// Another one comes back later, with a higher one yet, and one that talks nonsense.
		w.db.with(func() {
			w.db.agents["p1"] = w.tp.observer.Applied().Pair()
			w.db.agents["p2"] = topology.Pair{Epoch: 30, Version: 5000}
			w.db.agents["p3"] = topology.Pair{Epoch: 1 << 60, Version: 1 << 60}
		})
		w.db.join("orders/a2")
		w.run(time.Second)
		w.converged()
		if n := gauge(p.g.metrics.implausible); n != 1 || p.g.Note() != "" {
			t.Errorf("%v reports ignored, note %q", n, p.g.Note())
		}
		if c := w.tp.lastApplied(); c.Version != 5001 || c.Epoch != 41 {
			t.Errorf("commit %s", c.Pair())
		}
		w.run(10 * time.Second)
		if c := w.tp.lastApplied(); c.Version != 5001 || c.Epoch != 41 {
			t.Errorf("later: commit %s", c.Pair())
		}
	})
}

// TestHoldLastsAsLongAsTheLongestStaleLimit: an instance that beats seldom needs longer to be found silent.
func TestHoldLastsAsLongAsTheLongestStaleLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.put("orders/slow", func(in *registry.Instance) { in.StaleAfter = time.Minute })
		w.db.put("orders/dead", func(in *registry.Instance) { in.StaleAfter, in.Liveness = 4*time.Minute, registry.Stale })
		w.db.agents["p1"] = topology.Pair{Epoch: 1, Version: 1}
		p := w.start()
		defer p.end()
		w.run(58 * time.Second)
		if w.commits() != 0 {
			t.Error("the hold ended too early")
		}
		w.run(4 * time.Second)
		w.converged()
	})
}

func TestGate(t *testing.T) {
	type look struct {
		next  int64
		clock time.Duration
		end   int64
		open  bool
	}
	for name, looks := range map[string][]look{
		"reached at once, then one limit":         {{5, 10, 5, false}, {6, 12, 6, false}, {6, 13, 7, true}},
		"the backlog first":                       {{2, 10, 9, false}, {8, 99, 9, false}, {9, 100, 9, false}, {9, 102, 9, false}, {12, 103, 12, true}},
		"a position nobody knows":                 {{-1, 10, 0, false}, {-1, 99, 0, false}, {0, 99, 0, false}, {0, 102, 0, true}},
		"clock stands still":                      {{5, 10, 5, false}, {900, 10, 900, false}, {901, 10, 901, false}},
		"beyond the end until restarted":          {{100, 10, 4, false}, {100, 50, 9, false}, {100, 90, 200, false}, {4, 91, 300, false}, {4, 94, 300, true}},
		"made anew in the hold":                   {{50, 10, 100, false}, {50, 20, 3, false}, {3, 21, 3, false}, {3, 23, 3, false}, {4, 24, 4, true}},
		"made anew after (a)":                     {{100, 10, 100, false}, {100, 99, 0, false}, {0, 100, 2, false}, {2, 103, 2, true}},
		"clock goes back: restored once more":     {{5, 10, 5, false}, {5, 4, 5, false}, {5, 6, 5, false}, {5, 7, 5, true}},
		"it stays open only while it stays so":    {{5, 10, 5, false}, {5, 13, 5, true}, {5, 1, 5, false}},
		"what came after the beginning is no aim": {{5, 10, 5, false}, {6, 13, 1000, true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(3)
			for i, l := range looks {
				waiting := g.look([]registry.StreamState{{Part: 0, NextOffset: l.next, Clock: l.clock}}, map[int32]int64{0: l.end})
				if (waiting == 0) != l.open {
					t.Errorf("look %d: waits for %d", i, waiting)
				}
			}
		})
	}
	g := newGate(3)
	if n := g.look([]registry.StreamState{{Part: 0}}, map[int32]int64{0: 0, 1: 0}); n != 2 {
		t.Errorf("waits for %d of 2", n)
	}
	if n := g.look([]registry.StreamState{{Part: 0, Clock: 3}}, map[int32]int64{0: 0, 1: 0}); n != 1 {
		t.Errorf("a partition without a row: waits for %d", n)
	}
}
