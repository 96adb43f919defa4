package balance

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// play is one random schedule over both.
type play struct {
	t     *testing.T
	rng   *rand.Rand
	now   int64
	real  *Group
	ref   *refGroup
	unit  int
	slow  time.Duration
	next  int // id
	spec  Spec
	real1 []*Pass
	ref1  []*refPass
}

func (w *play) server() Server {
	w.next++
	s := Server{Key: Key{ID: fmt.Sprint("p", w.next), Backup: w.rng.IntN(5) == 0}, Addr: fmt.Sprint("10.0.0.", w.next), SlowStart: w.slow}
	w.vary(&s)
	return s
}

func (w *play) vary(s *Server) {
	// In hundredths a changed weight is rounded more finely, and a window that is cut begins a ramp: another order.
	if w.slow == 0 || s.Weight == 0 {
		s.Weight = 1 + w.rng.IntN([]int{1, 3, 12, 100}[w.rng.IntN(4)])
		s.MaxFails = w.rng.IntN(4)
		s.FailTimeout = time.Duration(w.rng.IntN(4)) * time.Second
	}
	s.MaxConns = max(w.rng.IntN(8)-4, 0)
	s.Down, s.Drain = w.rng.IntN(12) == 0, w.rng.IntN(12) == 0
}

func (w *play) change() {
	servers := append([]Server{}, w.spec.Servers...)
	for range 1 + w.rng.IntN(2) {
		i := 0
		if len(servers) > 0 {
			i = w.rng.IntN(len(servers))
		}
		switch op := w.rng.IntN(5); {
		case op == 0 || len(servers) == 0:
			servers = append(servers[:i], append([]Server{w.server()}, servers[i:]...)...)
		case op == 1 && len(servers) > 1:
			servers = append(servers[:i], servers[i+1:]...)
		case op == 2:
			servers[i].Incarnation++
		case op == 3:
			servers[i].Addr += "0"
		default:
			w.vary(&servers[i])
		}
	}
	w.spec.Servers = servers
	c, err := w.real.Prepare(w.spec)
	if err != nil {
		w.t.Fatal(err)
	}
	if c != nil {
		Swap([]*Change{c}, func() {})
		w.real = c.Next
		w.ref = w.ref.swap(servers)
	}
}

func (w *play) step() string {
	w.now += 2e6
	k := 0
	if len(w.real1) > 0 {
		k = w.rng.IntN(len(w.real1))
	}
	switch op := w.rng.IntN(40); {
	case op == 0:
		w.change()
		return "swap"
	case op < 4:
		w.now += int64(w.rng.IntN(3)) * int64(time.Second)
		return "wait"
	case op < 14 || len(w.real1) == 0:
		limit := max(w.rng.IntN(6)-3, 0)
		p := w.real.Begin(limit, nil)
		w.real1, w.ref1 = append(w.real1, &p), append(w.ref1, w.ref.begin(limit))
		k = len(w.real1) - 1
	}
	p, r := w.real1[k], w.ref1[k]
	if p.open != nil {
		how := Result(w.rng.IntN(3))
		p.End(how)
		r.end(how, w.now/1e9)
		if p.Tries() != r.tries {
			w.t.Fatalf("%d tries left, want %d", p.Tries(), r.tries)
		}
		return "end"
	}
	got, _ := p.Pick()
	want := r.pick(w.now / 1e9)
	if (got == nil) != (want == nil) || got != nil && (got.ID() != want.Key.ID || got.Addr() != want.Addr) {
		w.t.Fatalf("picked %v, want %v", got, want)
	}
	if got == nil {
		w.real1, w.ref1 = append(w.real1[:k], w.real1[k+1:]...), append(w.ref1[:k], w.ref1[k+1:]...)
	}
	return "pick"
}

// TestAgainstReference compares random schedules of picks, failures, waits, limits and swaps, pick by pick and with all
// state, with the rules written down plainly.
func TestAgainstReference(t *testing.T) {
	for _, tc := range []struct {
		name   string
		method string
		count  bool
		slow   time.Duration
	}{
		{name: "round robin"}, {name: "least_conn", method: "least_conn"}, {name: "counted single", count: true},
		{name: "in hundredths", count: true, slow: time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(40) {
				w := &play{t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: 1_800_000_000_001e6, unit: 1, slow: tc.slow,
					ref: &refGroup{leastConn: tc.method != "", countSingle: tc.count}}
				if tc.slow > 0 {
					w.unit = slowUnit
				}
				w.spec.Method.Name, w.spec.CountSingle = tc.method, tc.count
				for range 1 + w.rng.IntN(6) {
					w.spec.Servers = append(w.spec.Servers, w.server())
				}
				var err error
				if w.real, err = NewGroup("u", Env{Clock: func() int64 { return w.now }}, w.spec); err != nil {
					t.Fatal(err)
				}
				w.ref = w.ref.swap(w.spec.Servers)
				for n := range 400 {
					what := fmt.Sprint("seed ", seed, ", step ", n, ", ", w.step())
					w.ref.same(t, what, w.real.Snapshot(), w.unit)
				}
			}
		})
	}
}
