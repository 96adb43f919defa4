package confgen

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
					w.fault = func(n int, op string) mishap {
						if n == k {
							reached[op] = true
							return how.what
						}
						return pass
					}
					a := w.start()
					w.fault = nil
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
					w.fault = func(n int, op string) mishap {
						if n == k {
							return how.what
						}
						return pass
					}
					p := w.start()
					defer p.end()
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
		if v := w.db.newest().Version; v != 1 || !p.g.Leader() || p.g.Ready() == nil {
			t.Errorf("version %d, leads %v, ready: %v", v, p.g.Leader(), p.g.Ready())
		}
		w.tp.with(func() { w.tp.down = nil })
		settle(300 * time.Millisecond)
		w.converged()
		if err := p.g.Ready(); err != nil {
			t.Error(err)
		}
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
