package balance

import (
	"strings"
	"testing"
	"time"
)

// slow is a server whose share grows for ten seconds.
func slow(s Server) Server {
	s.SlowStart = 10 * time.Second
	return s
}

// shareOf is how many of n picks went to the peer, its ramp standing still meanwhile.
func (l *lab) shareOf(id string, n int) int { return strings.Count(l.each(n), id) }

// TestSlowStartKeepsTheOrder: weights in hundredths pick as weights do, failures and recovery of weight included.
func TestSlowStartKeepsTheOrder(t *testing.T) {
	servers := []Server{forgiving(with(server("a", 1), 10)), server("b", 1), with(server("c", 1), 3)}
	plain := newLab(t, Spec{Servers: servers})
	ramped := newLab(t, Spec{Servers: []Server{slow(servers[0]), slow(servers[1]), slow(servers[2])}})
	script := strings.Repeat("aaaAaaaaaaaaaaaaaaaaAaaaaa", 4) // who comes is compared, not the letters
	if got, want := ramped.run(script), plain.run(script); got != want {
		t.Errorf("%s\nwithout slow_start\n%s", got, want)
	}
}

// TestJoinerRamps from a hundredth to its whole weight, a weight of one too, and nobody else is touched.
func TestJoinerRamps(t *testing.T) {
	a, b := slow(server("a", 1)), slow(server("b", 1))
	l := newLab(t, Spec{Servers: []Server{a}})
	l.swap(Spec{Servers: []Server{a, b}})
	for _, step := range []struct {
		passed time.Duration
		want   int // of 1000
	}{{0, 10}, {time.Second, 91}, {4 * time.Second, 333}, {5 * time.Second, 500}, {time.Hour, 500}} {
		l.wait(step.passed)
		if got := l.shareOf("b", 1000); got < step.want-2 || got > step.want+2 {
			t.Errorf("%v later: %d of 1000, want %d within 2", step.passed, got, step.want)
		}
	}
	if l.g.peers[1].flags&isRamping != 0 {
		t.Error("the ramp is through")
	}
}

// TestWhoRamps is when a ramp begins, and when none does.
func TestWhoRamps(t *testing.T) {
	a, b, c := slow(server("a", 1)), slow(server("b", 1)), slow(server("c", 1))
	downB := down(b)
	for _, tc := range []struct {
		name  string
		first []Server
		next  []Server
		want  string
	}{
		{"the first ones of an upstream", []Server{a, b}, []Server{a, b}, ""},
		{"a joiner", []Server{a, b}, []Server{a, b, c}, "c"},
		{"started again", []Server{a, b}, []Server{a, again(b)}, "b"},
		{"moved", []Server{a, b}, []Server{a, at(b, "new:80")}, "b"},
		{"down no longer", []Server{a, downB}, []Server{a, b}, "b"},
		{"down", []Server{a, b}, []Server{a, downB}, ""},
		{"another weight", []Server{a, b}, []Server{a, with(b, 7)}, ""},
		{"slow_start is new", []Server{server("a", 1), server("b", 1)}, []Server{a, b}, ""},
		{"a joiner without it", []Server{a, b}, []Server{a, b, server("d", 1)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t, Spec{Servers: tc.first})
			l.swap(Spec{Servers: tc.next})
			got := ""
			for _, p := range l.g.Snapshot() {
				if p.RampMillis > 0 {
					got += p.ID
				}
			}
			if got != tc.want {
				t.Errorf("in a ramp: %q, want %q", got, tc.want)
			}
		})
	}
}

// TestRecoveredRamps: from the end of its window on, whether the probe comes then or later.
func TestRecoveredRamps(t *testing.T) {
	l := newLab(t, Spec{Servers: []Server{slow(server("a", 1)), slow(server("b", 1))}})
	if got := l.run("Ab"); got != "Ab" {
		t.Fatal(got)
	}
	l.wait(11 * time.Second) // its window of 10 whole seconds has just ended
	if s := l.g.Snapshot()[0]; s.RampMillis != 10_000 || s.Debt != 100 && s.Debt != 99 {
		t.Errorf("%+v", s)
	}
	l.wait(5 * time.Second)
	if s := l.g.Snapshot()[0]; s.RampMillis != 5_000 {
		t.Errorf("%+v", s)
	}
	l.run(strings.Repeat("b", 300)) // its effective weight recovers
	if got := l.shareOf("a", 900); got < 298 || got > 302 {
		t.Errorf("half way: %d of 900, want a third", got)
	}
	l.wait(5 * time.Second)
	if got := l.shareOf("a", 900); got < 448 || got > 452 {
		t.Errorf("at the end: %d of 900, want half", got)
	}
}

// TestJoinChangesNoRamp: who joins or leaves during another's ramp leaves it as it is.
func TestJoinChangesNoRamp(t *testing.T) {
	a, b, c := slow(server("a", 1)), slow(server("b", 1)), slow(server("c", 1))
	l := newLab(t, Spec{Servers: []Server{a}})
	l.swap(Spec{Servers: []Server{a, b}})
	l.wait(4 * time.Second)
	for _, next := range [][]Server{{a, b, c}, {a, b}, {c, a, b}} {
		l.swap(Spec{Servers: next})
		for _, p := range l.g.Snapshot() {
			if p.ID == "b" && (p.RampMillis != 6000 || p.Debt != 60) {
				t.Errorf("%+v", p)
			}
		}
	}
}

// TestFirstAndLastSlowStart of an upstream turn the unit of all its weights, and with it their rotation.
func TestFirstAndLastSlowStart(t *testing.T) {
	a, b := forgiving(with(server("a", 1), 5)), server("b", 1)
	l := newLab(t, Spec{Servers: []Server{a, b}})
	old := l.g
	l.run("aa")
	before := l.g.Snapshot()
	l.swap(Spec{Servers: []Server{slow(a), b}})
	for i, s := range l.g.Snapshot() {
		if s.Current != 100*before[i].Current || s.Effective != 100*before[i].Effective || s.Unit != 100 {
			t.Errorf("%+v was %+v", s, before[i])
		}
	}
	p := old.Begin(NoLimit, nil)
	if peer, _ := p.Pick(); peer.ID() != "a" {
		t.Errorf("in the old table the order goes on: %s", peer.ID())
	}
	p.End(Succeeded)
	l.swap(Spec{Servers: []Server{a, b}})
	if got := l.run("baaaaab"); got != "baaaaab" {
		t.Errorf("without slow_start it goes on too: %s", got)
	}
	l.run("A")
	before = l.g.Snapshot()
	l.swap(Spec{Servers: []Server{again(slow(a)), b}})
	if s := l.g.Snapshot()[0]; s.Current != 100*before[0].Current || s.Effective != 300 {
		t.Errorf("a new process in the place of one that counted in ones: %+v was %+v", s, before[0])
	}
}

// TestLeastRamps: methods that compare by weight see the share as it is.
func TestLeastRamps(t *testing.T) {
	for _, method := range []string{"least_conn", "least_time"} {
		a, b := slow(server("a", 1)), slow(server("b", 1))
		spec := Spec{Servers: []Server{a}, Method: MethodSpec{Name: method}}
		l := newLab(t, spec)
		spec.Servers = []Server{a, b}
		l.swap(spec)
		l.wait(time.Second)
		got := ""
		for range 22 {
			_, id := l.open(nil)
			got += id
		}
		if n := strings.Count(got, "b"); n != 2 {
			t.Errorf("%s: a tenth of the weight takes a tenth of the open attempts: %s", method, got)
		}
	}
}

// TestRampWaitsForTheNewWindow: the ramp of a failed peer begins when the window ends that it has by now, whatever the
// method, and also when nobody picks the peer before it is through.
func TestRampWaitsForTheNewWindow(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(s *Server)
		want   int64 // ms of the ramp left, 4 s after the failure
	}{
		{"unchanged", func(s *Server) { s.MaxConns = 9 }, 17_000},
		{"a window of 2 s is over", func(s *Server) { s.FailTimeout = 2 * time.Second }, 10_000},
		{"a window of 5 s is not", func(s *Server) { s.FailTimeout = 5 * time.Second }, 12_000},
		{"a longer one", func(s *Server) { s.FailTimeout = 20 * time.Second }, 27_000},
		{"more failures are allowed", func(s *Server) { s.MaxFails = 2 }, 10_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := slow(server("a", 1)), slow(server("b", 1))
			l := newLab(t, Spec{Servers: []Server{a, b}, Method: MethodSpec{Name: "least_conn"}})
			if got := l.run("A"); got != "A" {
				t.Fatal(got)
			}
			l.wait(4 * time.Second)
			tc.change(&a)
			l.swap(Spec{Servers: []Server{a, b}, Method: MethodSpec{Name: "least_conn"}})
			if got := l.g.Snapshot()[0].RampMillis; got != tc.want {
				t.Errorf("%d ms left, want %d", got, tc.want)
			}
		})
	}
}
