package balance

import (
	"testing"
	"time"
)

// TestSingle is the way of an only peer: what is counted and what is not, with and without CountSingle.
func TestSingle(t *testing.T) {
	a, b := server("a", 1), server("b", 1)
	one := a
	one.MaxConns = 1
	for _, tc := range []struct {
		name    string
		spec    Spec
		tries   int
		broken  Reason // of the next request after a failure
		fails   int
		reduced bool
	}{
		{"single", Spec{Servers: []Server{a}}, 1, Eligible, 0, false},
		{"single, counted", Spec{Servers: []Server{a}, CountSingle: true}, 1, Failed, 1, true},
		{"single, with a method", Spec{Servers: []Server{a}, Method: MethodSpec{Name: "ip_hash"}}, 1, Eligible, 0, false},
		{"counted, with a method", Spec{Servers: []Server{a}, Method: MethodSpec{Name: "least_conn"}, CountSingle: true}, 1, Failed, 1, true},
		{"another one is down", Spec{Servers: []Server{a, down(b)}}, 1, Failed, 1, true},
		{"with a backup that is down", Spec{Servers: []Server{a, down(backup(b))}}, 1, Failed, 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t, tc.spec)
			p := l.g.Begin(NoLimit, nil)
			if p.Tries() != tc.tries {
				t.Errorf("%d tries, want %d", p.Tries(), tc.tries)
			}
			p.Pick()
			p.End(Broken)
			if s := l.g.Snapshot()[0]; s.Fails != tc.fails || (s.Effective < s.Weight) != tc.reduced {
				t.Errorf("after a failure: %+v", s)
			}
			q := l.g.Begin(NoLimit, nil)
			if _, why := q.Pick(); why != tc.broken {
				t.Errorf("the next request: %v, want %v", why, tc.broken)
			}
		})
	}
	full := newLab(t, Spec{Servers: []Server{one}})
	full.open(nil)
	p := full.g.Begin(NoLimit, nil)
	if _, why := p.Pick(); why != Full {
		t.Errorf("a single one can be full: %v", why)
	}
}

// TestSingleForgets: failures from a time when it was one of several are cleared by the only peer's next end, and do not
// keep it from being given meanwhile.
func TestSingleForgets(t *testing.T) {
	a, b := server("a", 1), server("b", 1)
	l := newLab(t, Spec{Servers: []Server{a, b}})
	l.run("A")
	l.swap(Spec{Servers: []Server{a}})
	if got := l.run("aaa"); got != "aaa" {
		t.Errorf("single: %q", got)
	}
	l.swap(Spec{Servers: []Server{a, b}})
	if got := l.g.Snapshot()[0]; got.Fails != 0 || got.Reason != "eligible" {
		t.Errorf("with b again: %+v", got)
	}
}

// TestSingleDraining is given to its sessions only.
func TestSingleDraining(t *testing.T) {
	a := server("a", 1)
	a.Drain, a.Route = true, "r1"
	l := newLab(t, Spec{Servers: []Server{a}, Sticky: StickySpec{Kind: "route"}})
	if _, id := l.open(of("r1")); id != "a" {
		t.Error("its session was not given it")
	}
	p := l.g.Begin(NoLimit, of("r2"))
	if _, why := p.Pick(); why != Draining {
		t.Errorf("another session: %v", why)
	}
}

// TestCountSingleChanges is a change like any other, and moves no counter.
func TestCountSingleChanges(t *testing.T) {
	spec := Spec{Servers: []Server{server("a", 1)}, CountSingle: true}
	l := newLab(t, spec)
	l.run("A")
	spec.CountSingle = false
	l.swap(spec)
	if got := l.g.Snapshot()[0]; got.Fails != 1 {
		t.Errorf("%+v", got)
	}
	if got := l.run("a"); got != "a" {
		t.Errorf("no longer counted: %q", got)
	}
	l.wait(time.Minute)
	if c, err := l.g.Prepare(spec); c != nil || err != nil {
		t.Errorf("nothing differs: %v, %v", c, err)
	}
}
