package balance

import (
	"math"
	"testing"
)

// TestRandomFollowsTheWeights within four standard deviations, at a fixed seed, also over who can't be given.
func TestRandomFollowsTheWeights(t *testing.T) {
	const n = 20_000
	for _, tc := range []struct {
		name    string
		two     bool
		servers []Server
		want    map[string]float64
	}{
		{"weights", false, []Server{server("a", 5), server("b", 3), server("c", 2)}, map[string]float64{"a": .5, "b": .3, "c": .2}},
		{"one down", false, []Server{server("a", 2), down(server("b", 6)), server("c", 1)}, map[string]float64{"a": 2. / 3, "c": 1. / 3}},
		// the chance to be drawn second: the sum over the others i of p(i) p(j) / (1 - p(i))
		{"two, idle", true, []Server{server("a", 6), server("b", 3), server("c", 1)},
			map[string]float64{"a": .3*.6/.7 + .1*.6/.9, "b": .6*.3/.4 + .1*.3/.9, "c": .6*.1/.4 + .3*.1/.7}},
	} {
		l := newLab(t, Spec{Method: MethodSpec{Name: "random", Two: tc.two}, Servers: tc.servers})
		got := map[string]int{}
		for range n {
			got[l.pick(nil)]++
		}
		for id, k := range got {
			p := tc.want[id]
			if off := math.Abs(float64(k) - n*p); off > 4*math.Sqrt(n*p*(1-p)) {
				t.Errorf("%s: %s got %d of %d, expected are %.0f", tc.name, id, k, n, n*p)
			}
		}
	}
}

// TestRandomTwoTakesTheLessBusy for its weight, whichever was drawn first.
func TestRandomTwoTakesTheLessBusy(t *testing.T) {
	l := newLab(t, Spec{Method: hashes["random two"], Servers: []Server{server("a", 2), server("b", 1)}})
	for _, p := range l.g.peers {
		p.conns = 2
	}
	for range 50 {
		if id := l.pick(nil); id != "a" {
			t.Fatalf("two at weight 2 are less than two at weight 1, and %s came", id)
		}
	}
	l.g.peers[0].conns = 5
	for range 50 {
		if id := l.pick(nil); id != "b" {
			t.Fatalf("five at weight 2 are more than two at weight 1, and %s came", id)
		}
	}
}

// TestRandomMovesNoWeight as long as its patience lasts.
func TestRandomMovesNoWeight(t *testing.T) {
	for _, name := range []string{"random", "random two", "ip_hash", "hash"} {
		l := newLab(t, Spec{Method: hashes[name], Servers: []Server{server("a", 5), server("b", 3)}})
		for range 20 {
			l.pick(keyed("k"))
		}
		for _, s := range l.g.Snapshot() {
			if s.Current != 0 {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}
