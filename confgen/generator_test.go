package confgen

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

func TestPublishesWhatTheRegistrySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start()
		defer p.end()
		settle(time.Second)
		if v := w.db.newest(); v.Version != 1 || v.Cause != "first version" {
			t.Errorf("an empty registry gives version %+v", v)
		}
		w.db.join("orders/a1", "orders/a2", "billing/b1")
		settle(200 * time.Millisecond)
		w.converged()
		v := w.db.newest()
		if v.Version != 2 || v.Cause != "orders/a1 joined; orders/a2 joined; billing/b1 joined (+2 more)" || v.Changed != 6 || v.Records != 6 || v.Revision != 3 || v.Epoch != 1 {
			t.Errorf("version %+v", v)
		}
		if c := w.tp.lastApplied(); c.Cause != v.Cause || c.At.IsZero() {
			t.Errorf("commit %+v", c)
		}
		w.db.leave("orders/a1")
		settle(200 * time.Millisecond)
		w.converged()
		if v := w.db.newest(); v.Version != 3 || v.Cause != "orders/a1 left" || v.Changed != 1 {
			t.Errorf("version %+v", v)
		}
	})
}

func TestQuietMakesNoVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		p := w.start()
		defer p.end()
		settle(time.Second)
		w.tp.with(func() { w.tp.commits = 0 })
		settle(3 * time.Minute)
		// A revision that changes nothing that is published, and one that is undone before anyone looks.
		w.db.put("orders/a1", func(in *registry.Instance) { in.Cause = "told again" })
		settle(time.Second)
		w.db.join("orders/a2")
		w.db.leave("orders/a2")
		settle(time.Second)
		if v := w.db.newest(); v.Version != 1 {
			t.Errorf("version %+v", v)
		}
		w.tp.with(func() {
			if w.tp.commits < 170 || w.tp.commits > 185 {
				t.Errorf("%d commits in 182 s, one each second is wanted", w.tp.commits)
			}
		})
		w.db.with(func() {
			if w.db.tidied < 25 || w.db.trimmed != w.db.tidied {
				t.Errorf("tidied %d times, trimmed %d", w.db.tidied, w.db.trimmed)
			}
		})
		w.db.join("orders/a3")
		settle(200 * time.Millisecond)
		if v := w.db.newest(); v.Cause != "orders/a3 joined" {
			t.Errorf("causes of what came to nothing are kept: %q", v.Cause)
		}
	})
}

func TestStandbyTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		a := w.start()
		settle(500 * time.Millisecond)
		b := w.start()
		defer b.end()
		settle(5 * time.Second)
		if !a.g.Leader() || b.g.Leader() || a.g.Ready() != nil || b.g.Ready() != nil {
			t.Fatalf("a leads %v (%v), b leads %v (%v)", a.g.Leader(), a.g.Ready(), b.g.Leader(), b.g.Ready())
		}
		a.kill()
		w.db.join("orders/a2")
		killed := time.Now()
		for w.tp.lastApplied().Epoch != 2 && time.Since(killed) < time.Minute {
			settle(10 * time.Millisecond)
		}
		if took := time.Since(killed); took > 3*time.Second {
			t.Errorf("taking over took %s, more than 3 lease times", took)
		}
		settle(time.Second)
		w.converged()
		if w.tp.unmatched > 0 {
			t.Errorf("%d commits without their records", w.tp.unmatched)
		}
		if a.g.Leader() {
			t.Error("the killed one believes to lead")
		}
	})
}

func TestGracefulStopHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		a := w.start()
		settle(500 * time.Millisecond)
		b := w.start()
		defer b.end()
		settle(time.Second)
		a.end()
		settle(500 * time.Millisecond)
		if !b.g.Leader() {
			t.Error("the lease was not given back")
		}
		if v, c := w.db.newest(), w.tp.lastApplied(); v.Version != 1 || c.Version != 1 || c.Epoch != 2 {
			t.Errorf("the same content: version %d, commit %s; want version 1, commit 2/1", v.Version, c.Pair())
		}
		w.converged()
	})
}

// TestCrashPoints kills the leader at each of its calls while it publishes, in each way, and lets a standby finish.
func TestCrashPoints(t *testing.T) {
	for _, how := range []struct {
		name string
		what mishap
	}{{"before", dieBefore}, {"after", dieAfter}, {"within", dieWithin}} {
		t.Run(how.name, func(t *testing.T) {
			reached := map[string]bool{}
			for k := 1; k <= 45; k++ {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.db.join("orders/a1", "billing/b1")
					a := w.start()
					a.setFault(func(n int, op string) mishap {
						if n == k {
							reached[op] = true
							return how.what
						}
						return pass
					})
					settle(300 * time.Millisecond)
					b := w.start()
					defer b.end()
					w.db.join("orders/a2")
					w.db.leave("billing/b1")
					settle(300 * time.Millisecond)
					w.db.leave("orders/a1")
					w.db.join("users/u1")
					settle(300 * time.Millisecond)
					a.kill()
					settle(5 * time.Second)
					w.converged()
					if w.tp.unmatched > 0 {
						t.Errorf("call %d: %d commits without their records", k, w.tp.unmatched)
					}
				})
			}
			for _, op := range []string{"acquire", "read", "agents", "latest", "records", "snapshot", "insert", "produce", "revision", "changes", "renew"} {
				if !reached[op] {
					t.Errorf("never crashed at %s", op)
				}
			}
		})
	}
}

// TestFailurePoints does the same with calls that fail, or whose answer is lost, while the leader lives on.
func TestFailurePoints(t *testing.T) {
	for _, how := range []struct {
		name string
		what mishap
	}{{"before", failBefore}, {"after", failAfter}, {"late", failLate}} {
		t.Run(how.name, func(t *testing.T) {
			for k := 1; k <= 45; k++ {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.db.join("orders/a1", "billing/b1")
					p := w.start()
					defer p.end()
					p.setFault(func(n int, op string) mishap {
						if n == k {
							return how.what
						}
						return pass
					})
					settle(300 * time.Millisecond)
					w.db.join("orders/a2")
					w.db.leave("billing/b1")
					settle(300 * time.Millisecond)
					w.db.leave("orders/a1")
					w.db.join("users/u1")
					settle(5 * time.Second)
					w.converged()
				})
			}
		})
	}
}

// TestStoppedLeaderChangesNothing stops a leader in the very moment when it writes, lets another take over, and wakes
// the first: what it had under way arrives late.
func TestStoppedLeaderChangesNothing(t *testing.T) {
	for _, op := range []string{"insert", "produce", "revision", "read", "renew"} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
						return stopBefore
					}
					return pass
				})
				// What a wants to write: a service that b will never publish.
				w.db.join("orders/a2", "ghost/g1")
				settle(500 * time.Millisecond)
				if op != "renew" && armed {
					t.Fatalf("a was not stopped")
				}
				a.pause() // all of it, should its renewal be the one that is stopped
				w.db.leave("ghost/g1")
				w.db.forget("ghost")
				w.db.leave("orders/a1")
				settle(4 * time.Second)
				if !b.g.Leader() {
					t.Fatal("b does not lead")
				}
				w.converged()
				before := w.tp.lastApplied()
				versions := len(w.db.versions)
				a.mu.Lock()
				a.calls = 0
				wrote := 0
				a.fault = func(n int, o string) mishap {
					if o == "produce" || o == "insert" {
						wrote++
					}
					return pass
				}
				a.mu.Unlock()
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
			})
		})
	}
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

func TestKafkaAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		p := w.start()
		defer p.end()
		settle(time.Second)
		w.tp.with(func() { w.tp.down = errors.New("no broker") })
		for _, name := range []string{"orders/a2", "orders/a3", "orders/a4"} {
			w.db.join(name)
			settle(30 * time.Second)
		}
		if v := w.db.newest().Version; v != 1 || !p.g.Leader() || p.g.Ready() != nil {
			t.Errorf("version %d, leads %v, ready: %v", v, p.g.Leader(), p.g.Ready())
		}
		w.tp.with(func() { w.tp.down = nil })
		settle(300 * time.Millisecond)
		w.converged()
		if v := w.db.newest(); v.Version != 2 || v.Cause != "orders/a2 joined; orders/a3 joined; orders/a4 joined" {
			t.Errorf("version %+v", v)
		}
	})
}

func TestDatabaseAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		a, b := w.start(), w.start()
		defer a.end()
		defer b.end()
		settle(time.Second)
		w.db.with(func() { w.db.down = errors.New("gone away") })
		settle(1500 * time.Millisecond)
		var before int
		w.tp.with(func() { before = w.tp.commits })
		settle(90 * time.Second)
		if a.g.Leader() || b.g.Leader() {
			t.Error("somebody leads without a lease")
		}
		w.tp.with(func() {
			if w.tp.commits != before {
				t.Error("somebody wrote without a lease")
			}
		})
		for _, p := range []*process{a, b} {
			if err := p.g.Ready(); err == nil || !strings.Contains(err.Error(), "gone away") {
				t.Errorf("ready: %v", err)
			}
		}
		w.db.with(func() { w.db.down = nil })
		settle(time.Second)
		if (a.g.Leader() && b.g.Leader()) || (!a.g.Leader() && !b.g.Leader()) || a.g.Ready() != nil || b.g.Ready() != nil {
			t.Errorf("a leads %v, b leads %v", a.g.Leader(), b.g.Leader())
		}
		w.converged()
		if v := w.db.newest().Version; v != 1 {
			t.Errorf("version %d", v)
		}
		if slices.Contains(w.db.kinds(), NoteRestored) {
			t.Error("an outage was taken for a restored database")
		}
	})
}

func TestTopicLost(t *testing.T) {
	for name, lose := range map[string]func(*conflog){"recreated": (*conflog).recreate, "wiped": (*conflog).wipe} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.db.join("orders/a1", "billing/b1")
				p := w.start()
				settle(3 * time.Second)
				lose(w.tp)
				settle(300 * time.Millisecond)
				w.converged()
				if v := w.db.newest().Version; v != 1 {
					t.Errorf("version %d", v)
				}
				// The same while nobody leads.
				p.end()
				lose(w.tp)
				p = w.start()
				defer p.end()
				settle(500 * time.Millisecond)
				w.converged()
				if v := w.db.newest().Version; v != 1 || slices.Contains(w.db.kinds(), NoteRestored) {
					t.Errorf("version %d, events %v", v, w.db.kinds())
				}
			})
		})
	}
}

// TestAuditFindsWhatTheTailMissed loses records in a way that neither end of the log shows.
func TestAuditFindsWhatTheTailMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1", "billing/b1")
		p := w.start()
		defer p.end()
		settle(time.Second)
		w.tp.with(func() {
			for i := range w.tp.messages {
				if w.tp.messages[i].Key == "service/orders" {
					w.tp.messages[i].Key = "service/other"
				}
			}
		})
		settle(25 * time.Second)
		w.converged()
	})
}

func TestDamagedHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1", "billing/b1")
		p := w.start()
		settle(time.Second)
		p.end()
		w.db.with(func() { w.db.records[0] = w.db.records[0][1:] })
		p = w.start()
		defer p.end()
		settle(time.Second)
		w.converged()
		if v := w.db.newest().Version; v != 2 {
			t.Errorf("version %d", v)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	p := &process{w: w}
	good := Config{Source: p, Leases: p, Versions: p, Fleet: p, Topic: p, Heartbeats: p, Holder: "x"}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no source": func(c *Config) { c.Source = nil }, "no leases": func(c *Config) { c.Leases = nil },
		"no versions": func(c *Config) { c.Versions = nil }, "no fleet": func(c *Config) { c.Fleet = nil },
		"no topic": func(c *Config) { c.Topic = nil }, "no heartbeats": func(c *Config) { c.Heartbeats = nil },
		"no holder": func(c *Config) { c.Holder = "" }, "negative poll": func(c *Config) { c.Poll = -1 },
		"negative lease": func(c *Config) { c.Lease = -1 }, "negative keep": func(c *Config) { c.KeepVersions = -1 },
	} {
		bad := good
		spoil(&bad)
		if _, err := New(bad); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
