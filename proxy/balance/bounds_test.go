package balance

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestScaled(t *testing.T) {
	for _, tc := range []struct{ n, to, from, want int }{
		{7, 20, 10, 14},
		{-99, 10, 100, -9},
		{0, 5, 3, 0},
		{9, 0, 3, 0},
		{1 << 50, 1 << 40, 1 << 41, 1 << 49},
		{-1 << 50, 1 << 40, 1 << 41, -1 << 49},
		{1 << 50, 1 << 40, 1, 1 << 56},
		{-1 << 40, 1 << 20, 1, -1 << 56},
	} {
		if got := scaled(tc.n, tc.to, tc.from); got != tc.want {
			t.Errorf("%d·%d/%d is %d, want %d", tc.n, tc.to, tc.from, got, tc.want)
		}
	}
}

// TestHugeWeights: a weight that is too large counts as the largest, and no change of weights overflows.
func TestHugeWeights(t *testing.T) {
	servers := func(weight int) []Server {
		out := make([]Server, 200)
		for i := range out {
			out[i] = slow(server(string(rune('A'+i)), weight))
		}
		return out
	}
	g := upstream(t, servers(math.MaxInt)...)
	for _, w := range []int{1 << 23, 1, math.MaxInt, 1 << 22, 7} {
		picks(t, g, 300)
		before := g.Snapshot()
		g = g.next(t, servers(w)...)
		for i, p := range g.peers {
			want := float64(before[i].Current) * float64(p.weight) / float64(before[i].Weight)
			if math.Abs(float64(p.current)-want) > 1+math.Abs(want)/1e9 {
				t.Fatalf("weight %d to %d: current weight %d became %d, want %.0f", before[i].Weight, p.weight, before[i].Current, p.current, want)
			}
		}
	}
	if got := servers(math.MaxInt)[0].weight(); got != maxWeight {
		t.Errorf("weight %d", got)
	}
}

func TestWholeSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		-1: 0, 0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, math.MaxInt64: math.MaxInt64/int64(time.Second) + 1,
	} {
		if got := wholeSeconds(d); got != want {
			t.Errorf("%d ns is %d s, want %d", d, got, want)
		}
	}
}

// TestLongestWindow: fail_timeout and slow_start of centuries disable, and let nothing overflow.
func TestLongestWindow(t *testing.T) {
	a := slow(server("a", maxWeight))
	a.FailTimeout, a.SlowStart, a.MaxConns, a.MaxFails = math.MaxInt64, math.MaxInt64, math.MaxInt, 1
	l := newLab(t, Spec{Servers: []Server{a, server("b", 1)}})
	if got := l.run("Abb"); got != "Abb" {
		t.Fatal(got)
	}
	l.wait(50 * 365 * 24 * time.Hour)
	if s := l.g.Snapshot()[0]; s.Reason != "failed" || s.Debt <= 0 || s.Debt > 100*maxWeight || s.MaxConns != math.MaxInt32 {
		t.Errorf("%+v", s)
	}
}

// TestFailuresSaturate, since with max_fails=0 nothing but a late success clears them.
func TestFailuresSaturate(t *testing.T) {
	a := server("a", 1)
	a.MaxFails = 0
	l := newLab(t, Spec{Servers: []Server{a, down(server("b", 1))}})
	l.g.peers[0].fails = math.MaxInt32
	l.run("A")
	if got := l.g.peers[0].fails; got != math.MaxInt32 {
		t.Errorf("%d failures", got)
	}
}

// TestRingIsBounded: weights that would fill the memory share what a ring may have, each with one point at least.
func TestRingIsBounded(t *testing.T) {
	weigh := func(weights ...int) []Server {
		out := make([]Server, len(weights))
		for i, w := range weights {
			out[i].Weight = w
		}
		return out
	}
	for _, tc := range []struct {
		name    string
		weights []int
		want    []int
	}{
		{"exactly what may be", []int{60_000, 40_000}, []int{60_000 * 160, 40_000 * 160}},
		{"twice as much", []int{120_000, 80_000}, []int{60_000 * 160, 40_000 * 160}},
		{"out of all proportion", []int{math.MaxInt, 1}, []int{100_000*160 - 1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := pointsOf(weigh(tc.weights...)); !slices.Equal(got, tc.want) {
				t.Errorf("points %v, want %v", got, tc.want)
			}
		})
	}
}

// TestRecordIsBounded: of an upstream with very many peers fewer picks are kept, and never none.
func TestRecordIsBounded(t *testing.T) {
	for _, tc := range []struct{ peers, want int }{{100, 1000}, {10_000, 20}, {recordedMost + 1, 1}} {
		r := recorder{limit: 1000}
		e := &Explanation{Candidates: make([]Candidate, tc.peers)}
		for range 1010 {
			r.add(e)
		}
		if len(r.picks) != tc.want || r.candidates != tc.want*tc.peers {
			t.Errorf("%d peers: %d picks are kept with %d candidates, want %d", tc.peers, len(r.picks), r.candidates, tc.want)
		}
	}
}
