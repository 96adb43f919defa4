package upstrand

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCursorOverSwaps: whose turn it is keeps it; when it left, the next one that stays has it.
func TestCursorOverSwaps(t *testing.T) {
	for _, tc := range []struct {
		name, before, after string
		walks               int
		want                string
	}{
		{"one joins behind", "a b c", "a b c d", 1, "b"},
		{"one joins before", "a b c", "x a b c", 1, "b"},
		{"another left", "a b c", "b c", 1, "b"},
		{"its turn left", "a b c", "a c", 1, "c"},
		{"it and the next left", "a b c d", "a d", 1, "d"},
		{"it was the last", "a b c", "a b", 2, "a"},
		{"all are new", "a b c", "x y z", 2, "x"},
		{"from nothing", "", "a b", 0, "a"},
		{"to another list", "a b", "| a b", 1, "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := strandOf(t, tc.before, "5xx")
			for range tc.walks {
				s.walk("GET")
			}
			s.state.Swap(specOf(t, tc.after, "5xx"))
			if got := s.walk("GET"); got != tc.want+": answered" {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestBlacklistAndCountsStay(t *testing.T) {
	s := strandOf(t, "a/60 b/60", "5xx")
	s.plays = map[string]string{"a": "503", "b": "503"}
	s.walk("GET")
	s.state.Swap(specOf(t, "c/60 a/60", "5xx"))
	for _, m := range s.state.View(s.now).Members {
		if blocked := m.BlockedUntil != 0; blocked != (m.Name == "a") {
			t.Errorf("%s: until %d", m.Name, m.BlockedUntil)
		}
		if m.Name == "a" && (m.Counts.Stops != 1 || m.Counts.Jumps[On5xx] != 1) {
			t.Errorf("%+v", m.Counts)
		}
	}
	s.state.Swap(specOf(t, "b/60", "5xx"))
	if m := s.state.View(s.now).Members; m[0].BlockedUntil != 0 || m[0].Counts.Stops != 0 {
		t.Errorf("an upstream that comes again is as it was: %+v", m[0])
	}
}

// TestSwapOnTheWay: a walk goes on with what is there.
func TestSwapOnTheWay(t *testing.T) {
	for _, tc := range []struct{ name, before, after, want string }{
		{"nothing changed", "a b c", "a b c", "a b c: last_stop"},
		{"the next left", "a b c", "a c", "a c: last_stop"},
		{"all that were left are gone", "a b c", "a", "a: last_stop"},
		{"another in between", "a b", "a x b", "a x b: last_stop"},
		{"it left itself", "a b", "b c", "a b: last_stop"},
		{"all renamed", "a b c", "x y z", "a x y: last_stop"}, // three stops, as many as there are
		{"it became backup", "a b", "b | a", "a b: last_stop"},
		{"a backup comes", "a b", "a b | d", "a b d: last_stop"},
		{"nobody is left", "a b", "", "a: last_stop"},
		{"the order turned", "a b c", "c b a", "a c b: last_stop"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := strandOf(t, tc.before, "5xx 200")
			w := s.state.Begin(Ask{}, s.now)
			s.state.Swap(specOf(t, tc.after, "5xx 200"))
			if got := s.finish(&w); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// TestWalksUnderChange plays schedules of chance: walks side by side, while upstreams come, go, change their list and are
// renamed, and time passes.
func TestWalksUnderChange(t *testing.T) {
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		c := &chance{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), now: startOfTime}
		c.state = NewState("s", Env{Rand: c.rnd.Uint64})
		c.swap()
		for range 60 {
			c.step()
		}
		for len(c.walks) > 0 {
			c.stop(0)
		}
		c.balanced()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type chance struct {
	t     *testing.T
	rnd   *rand.Rand
	state *State
	now   int64
	spec  Spec
	sizes []int // of the specs, in order
	walks []*walking
}

type walking struct {
	walk   Walk
	sizes  int // specs there were when it began
	way    []string
	lists  map[string]bool
	backup bool
}

func (c *chance) swap() {
	names := []string{"a", "b", "c", "d", "e", "f"}
	c.rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var normal, backup strings.Builder
	for _, name := range names[:c.rnd.IntN(len(names)+1)] {
		to := &normal
		if c.rnd.IntN(3) == 0 {
			to = &backup
		}
		fmt.Fprintf(to, "%s/%d ", name, c.rnd.IntN(3))
		if to == &normal && c.rnd.IntN(5) == 0 { // in both lists
			fmt.Fprintf(&backup, "%s ", name)
		}
	}
	c.spec = specOf(c.t, normal.String()+"|"+backup.String(), "error timeout 5xx 204")
	c.spec.PerRequest, c.spec.StartRandom, c.spec.NonIdempotent = c.rnd.IntN(2) == 0, c.rnd.IntN(4) == 0, c.rnd.IntN(2) == 0
	if c.rnd.IntN(3) == 0 {
		c.spec.Timeout = 3 * time.Second
	}
	c.sizes = append(c.sizes, len(c.spec.Members))
	c.state.Swap(c.spec)
}

func (c *chance) step() {
	switch n := c.rnd.IntN(10); {
	case n == 0:
		c.swap()
	case n == 1:
		c.now += int64(c.rnd.IntN(1500)) * int64(time.Millisecond)
	case n == 2:
		c.state.Reset(string(rune('a' + c.rnd.IntN(6))))
	case n < 6 || len(c.walks) == 0:
		c.begin()
	default:
		c.stop(c.rnd.IntN(len(c.walks)))
	}
}

func (c *chance) begin() {
	method := []string{"GET", "POST"}[c.rnd.IntN(2)]
	c.walks = append(c.walks, &walking{walk: c.state.Begin(Ask{Method: []byte(method)}, c.now), sizes: len(c.sizes), lists: map[string]bool{}})
}

// stop makes one stop of a walk and checks what must hold.
func (c *chance) stop(i int) {
	w := c.walks[i]
	w.walk.Enter(c.now)
	name, key := "nobody", "nobody"
	if at := w.walk.At(); at != nil {
		if name, key = at.Name, fmt.Sprint(at.Name, at.Backup); w.backup && !at.Backup {
			c.t.Errorf("%v: %s is a normal upstream behind a backup one", w.way, name)
		}
		w.backup = at.Backup
	}
	if w.lists[key] {
		c.t.Errorf("%v: %s again", w.way, key)
	}
	w.lists[key] = true
	w.way = append(w.way, name)
	most := 1
	for _, n := range c.sizes[w.sizes-1:] {
		most = max(most, n)
	}
	if len(w.way) > most+1 { // nobody, where there was no upstream at first, is no upstream
		c.t.Errorf("%v: %d stops of at most %d upstreams", w.way, len(w.way), most)
	}
	r := []Result{{200, false, true, true}, {503, false, true, true}, {502, true, false, true}, {502, true, true, true},
		{504, true, true, true}, {503, false, true, false}}[c.rnd.IntN(6)]
	if w.walk.After(r, c.now) {
		c.free(w)
		if c.rnd.IntN(8) > 0 {
			return
		}
		w.walk.Stay(NoBudget, c.now)
	}
	c.walks = append(c.walks[:i], c.walks[i+1:]...)
}

// free checks that a walk goes on to an upstream that is not blacklisted.
func (c *chance) free(w *walking) {
	at := w.walk.At()
	for _, m := range c.state.View(c.now).Members {
		if m.Name == at.Name && m.Backup == at.Backup && m.BlockedUntil > 0 {
			c.t.Errorf("%v: on to %s, which is blacklisted", w.way, at.Name)
		}
	}
}

// balanced checks the counts when no walk is going on.
func (c *chance) balanced() {
	v := c.state.View(c.now)
	sum := func(counts []uint64) (n uint64) {
		for _, one := range counts {
			n += one
		}
		return n
	}
	if ended := sum(v.Totals.Finals[:]); ended != v.Totals.Walks {
		c.t.Errorf("%d walks, of which %d ended", v.Totals.Walks, ended)
	}
	if jumps := sum(v.Totals.Jumps[:]); v.Totals.Stops != v.Totals.Walks+jumps {
		c.t.Errorf("%d stops of %d walks with %d jumps", v.Totals.Stops, v.Totals.Walks, jumps)
	}
}

// TestSideBySide lets everything run at once, for the race detector.
func TestSideBySide(t *testing.T) {
	s := strandOf(t, "a/1 b/1 c | d/1 e", "5xx")
	specs := []Spec{s.spec, specOf(t, "b/1 c a/2", "5xx"), specOf(t, "x | a", "5xx 200")}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 300 {
				w := s.state.Begin(Ask{Method: []byte("GET")}, startOfTime+int64(j)*1e8)
				for w.Enter(startOfTime); w.After(Result{Status: 500 + (i+j)%2, Held: true}, startOfTime+int64(j)*1e8); {
					w.Enter(startOfTime)
				}
			}
		})
	}
	all.Go(func() {
		for j := range 200 {
			s.state.Swap(specs[j%len(specs)])
			s.state.View(startOfTime)
			s.state.Reset("a")
		}
	})
	all.Wait()
	if v := s.state.View(startOfTime); v.Totals.Walks != 1200 {
		t.Errorf("%d walks", v.Totals.Walks)
	}
}
