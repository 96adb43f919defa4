package confgen

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// TestStoppedLeaderChangesNothing stops a leader in the very moment when it writes, lets another take over, and wakes
// the first: what it had under way arrives late, and what it would have done next must not happen.
func TestStoppedLeaderChangesNothing(t *testing.T) {
	for _, tc := range []struct {
		op   string
		what mishap
	}{
		{"insert", stopBefore}, {"insert", stopAfter}, {"produce", stopBefore}, {"produce", stopAfter}, {"revision", stopBefore},
		{"changes", stopAfter}, {"latest", stopAfter}, {"read", stopBefore}, {"renew", stopBefore}, {"agents", stopBefore},
	} {
		for _, other := range []string{"publishes another version", "has nothing to publish"} {
			t.Run(fmt.Sprintf("%s-%d/%s", tc.op, tc.what, other), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { stopAndWake(t, tc.op, tc.what, other == "has nothing to publish") })
			})
		}
	}
}

func stopAndWake(t *testing.T, op string, what mishap, same bool) {
	w := newWorld(t)
	w.db.join("orders/a1", "billing/b1")
	a := w.start()
	settle(500 * time.Millisecond)
	b := w.start()
	defer b.end()
	settle(time.Second)
	armed := true
	a.setFault(func(n int, o string) mishap {
		if armed && o == op {
			armed = false
			return what
		}
		return pass
	})
	w.db.join("orders/a2", "ghost/g1") // what a wants to write
	settle(500 * time.Millisecond)
	if armed {
		t.Fatal("a was not stopped")
	}
	a.pause()
	w.db.leave("ghost/g1", "orders/a2")
	w.db.forget("ghost")
	if !same {
		w.db.leave("orders/a1")
	}
	settle(4 * time.Second)
	if !b.g.Leader() {
		t.Fatal("b does not lead")
	}
	w.converged()
	before := w.tp.lastApplied()
	versions := len(w.db.versions)
	wrote := 0
	a.setFault(func(n int, o string) mishap {
		if o == "produce" || o == "insert" {
			wrote++
		}
		return pass
	})
	a.resume()
	settle(2 * time.Second)
	if a.g.Leader() {
		t.Error("a believes to lead")
	}
	w.converged()
	if len(w.db.versions) != versions {
		t.Error("a made a version")
	}
	if wrote > 0 {
		t.Errorf("a began to write %d times after it was woken", wrote)
	}
	after := w.tp.lastApplied()
	if after.Version != before.Version || after.Digest != before.Digest || after.Epoch != before.Epoch {
		t.Errorf("the observer went from %s to %s", before.Pair(), after.Pair())
	}
	if w.tp.unmatched > 0 {
		t.Errorf("%d commits without their records", w.tp.unmatched)
	}
	a.kill()
}

func TestRepairsForeignWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1", "billing/b1")
		p := w.start()
		defer p.end()
		settle(time.Second)
		w.db.join("orders/a2")
		settle(time.Second)
		version := w.db.newest().Version
		msg := func(key, value string, epoch, version int64) topology.Message {
			m := topology.Message{Record: topology.Record{Key: key}, Pair: topology.Pair{Epoch: epoch, Version: version}}
			if value != "" {
				m.Value = []byte(value)
			}
			return m
		}
		var same string
		w.tp.with(func() { same = string(w.tp.observer.Get("service/billing")) })
		for name, m := range map[string]topology.Message{
			"an older record over a newer one":   msg("service/orders", `{"name":"orders","instances":[]}`, 0, 1),
			"an older record that says the same": msg("service/billing", same, 0, 1),
			"an older tombstone":                 msg("service/billing", "", 0, 1),
			"a key of nobody":                    msg("service/ghost", `{"name":"ghost","instances":[]}`, 0, 1),
			"a record of this version":           msg("upstream/orders", `{"name":"orders","origin":"derived","directives":[]}`, 1, version),
			"a tombstone of this version":        msg("route//orders", "", 1, version),
			"nonsense":                           msg("what is this", "?", 0, 0),
			"an older commit":                    msg(topology.KeyCommit, `{"version":1,"epoch":0}`, 0, 1),
			"half a commit":                      msg(topology.KeyCommit, `{"version":`, 1, version),
			"no commit":                          msg(topology.KeyCommit, "", 0, 0),
		} {
			w.tp.write(m)
			settle(200 * time.Millisecond)
			if topo, err := w.tp.newcomer(); err != nil || topo.Version != version {
				t.Errorf("%s: a newcomer gets %+v, %v", name, topo, err)
			}
			w.tp.with(func() {
				if last := w.tp.messages[len(w.tp.messages)-1]; m.Key != topology.KeyCommit && last.Key != topology.KeyCommit {
					t.Errorf("%s: the log does not end with a commit", name)
				}
			})
		}
		w.converged()
		if v := w.db.newest().Version; v != version {
			t.Errorf("repairs made version %d", v)
		}
	})
}
