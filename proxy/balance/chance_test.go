package balance_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// deviations is how far a count may be from its expectation, in standard deviations. The seed is fixed, so that this is
// no matter of luck from run to run.
const deviations = 4

// count sends the requests of a step whose order is one of many, and compares how often which peers were tried.
func (r *replay) count(step int, s *vectorStep, asks []ask) {
	r.t.Helper()
	got := map[string]int{}
	for k, q := range asks {
		got[strings.Join(r.send(s, k, q).peers, ",")]++
	}
	if s.Expect.Theory == nil {
		r.countLoosely(step, s, got, len(asks))
		return
	}
	for peers, n := range got {
		if s.Expect.Theory[peers] == 0 {
			r.t.Errorf("step %d: %d requests went to %s, none should", step, n, peers)
		}
	}
	n := float64(len(asks))
	for _, peers := range slices.Sorted(maps.Keys(s.Expect.Theory)) {
		p := s.Expect.Theory[peers]
		if off := math.Abs(float64(got[peers]) - n*p); off > deviations*math.Sqrt(n*p*(1-p)) {
			r.t.Errorf("step %d: %s got %d of %.0f requests, expected are %.1f", step, peers, got[peers], n, n*p)
		}
	}
}

// countLoosely compares with a recording that gives no probabilities: the counts of single peers to the recorded ones
// within the deviations of both samples, and that requests with retries are as rare.
func (r *replay) countLoosely(step int, s *vectorStep, got map[string]int, total int) {
	r.t.Helper()
	retried, recorded := 0, 0
	for peers, n := range got {
		if strings.Contains(peers, ",") {
			retried += n
		}
	}
	for peers, n := range s.Expect.Counts {
		if strings.Contains(peers, ",") {
			recorded += n
			continue
		}
		p := float64(n) / float64(total)
		if off := math.Abs(float64(got[peers] - n)); off > deviations*math.Sqrt(2*float64(total)*p*(1-p)) {
			r.t.Errorf("step %d: %s got %d of %d requests, nginx gave it %d", step, peers, got[peers], total, n)
		}
	}
	if retried != recorded {
		r.t.Errorf("step %d: %d requests were retried, in nginx %d: %v", step, retried, recorded, got)
	}
}

// randomRules are for cases whose recorded order is one of many, but not any: what must hold whatever was drawn.
var randomRules = map[string]func(*testing.T, *vector){
	"random_two_of_two_busy":   holdsForAnyDraw(func(first, later string) bool { return later != first }),
	"random_two_busy_weighted": holdsForAnyDraw(func(first, later string) bool { return later == first }),
}

// holdsForAnyDraw replays a case with many seeds. Holds is given the peer of the very first request, and that of each
// request of the last step.
func holdsForAnyDraw(holds func(first, later string) bool) func(*testing.T, *vector) {
	return func(t *testing.T, v *vector) {
		for seed := range uint64(50) {
			r := newReplay(t, v, seed)
			first := ""
			for i := range v.Steps {
				s := &v.Steps[i]
				for k, q := range r.prepare(s) {
					peers := strings.Join(r.send(s, k, q).peers, ",")
					if first == "" {
						first = peers
					}
					if i == len(v.Steps)-1 && !holds(first, peers) {
						t.Fatalf("seed %d: after %s came %s", seed, first, peers)
					}
				}
			}
			r.end()
		}
	}
}
