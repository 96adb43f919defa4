package balance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestSharesAndStarvation: over any whole turn each peer gets exactly its weight, and nobody waits longer than a turn.
func TestSharesAndStarvation(t *testing.T) {
	for _, weights := range [][]int{{1, 1}, {5, 1, 1}, {10, 1}, {7, 3, 2, 1}, {100, 50, 25}, {1, 2, 3, 4, 5, 6}} {
		t.Run(fmt.Sprint(weights), func(t *testing.T) {
			var servers []Server
			total := 0
			for i, w := range weights {
				servers = append(servers, server(string(rune('a'+i)), w))
				total += w
			}
			g := upstream(t, servers...)
			for turn := range 20 {
				got := picks(t, g, total)
				for i, w := range weights {
					if n := strings.Count(got, string(rune('a'+i))); n != w {
						t.Fatalf("turn %d: peer %d picked %d times, want %d", turn, i, n, w)
					}
				}
			}
		})
	}
}

// TestJoinersAndLeaversMoveNoShare: over joins and leaves, those who stay keep the shares of their weights.
func TestJoinersAndLeaversMoveNoShare(t *testing.T) {
	g := upstream(t, server("a", 3), server("b", 1))
	count := map[rune]int{}
	for i := range 200 {
		for _, id := range picks(t, g, 7) {
			count[id]++
		}
		if i%2 == 0 {
			g = g.next(t, server("a", 3), server("b", 1), server(string(rune('c'+i%20)), 2))
		} else {
			g = g.next(t, server("a", 3), server("b", 1))
		}
	}
	if ratio := float64(count['a']) / float64(count['b']); ratio < 2.8 || ratio > 3.2 {
		t.Errorf("a:b is %.2f, want 3 within 0.2: %v", ratio, count)
	}
}

// TestWeightChangeIsInForceAtOnce, and gives nobody a run of picks.
func TestWeightChangeIsInForceAtOnce(t *testing.T) {
	g := upstream(t, server("a", 100), server("b", 100))
	picks(t, g, 33)
	g = g.next(t, server("a", 1), server("b", 1))
	if got := picks(t, g, 20); strings.Contains(got, "aaa") || strings.Contains(got, "bbb") {
		t.Errorf("after 100:100 -> 1:1: %s", got)
	}
	g = upstream(t, server("a", 10), server("b", 1))
	picks(t, g, 17)
	g = g.next(t, server("a", 1), server("b", 1))
	if got := picks(t, g, 20); strings.Count(got, "a") > 11 {
		t.Errorf("after 10:1 -> 1:1: %s", got)
	}
}

// TestHealthyCycle, for random weights: after every pick the current weights add up to 0; after a whole turn each of them
// is 0; within it each peer was given exactly its weight, and none waited longer than twice its due.
func TestHealthyCycle(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var servers []Server
		total := 0
		for i := range 1 + rng.IntN(12) {
			s := server(fmt.Sprint("s", i), 1+rng.IntN(40))
			if seed%4 == 0 {
				s = slow(s)
			}
			servers = append(servers, s)
			total += s.Weight
		}
		g := upstream(t, append(servers, backup(server("spare", 1)))...)
		given, last := map[*Peer]int{}, map[*Peer]int{}
		for n := 1; n <= total; n++ {
			p := g.Begin(NoLimit, nil)
			peer, _ := p.Pick()
			p.End(Succeeded)
			given[peer]++
			if due := (total + peer.weight - 1) / peer.weight; n-last[peer] > 2*due {
				t.Fatalf("seed %d: weight %d of %d waited for %d picks", seed, peer.weight, total, n-last[peer])
			}
			last[peer] = n
			sum := 0
			for _, p := range g.main.peers {
				sum += p.current
			}
			if sum != 0 {
				t.Fatalf("seed %d, pick %d: current weights add up to %d", seed, n, sum)
			}
		}
		for _, p := range g.main.peers {
			if p.current != 0 || given[p] != p.weight {
				t.Fatalf("seed %d: weight %d was given %d times, current weight %d", seed, p.weight, given[p], p.current)
			}
		}
	}
}

// TestLongRunShares: in a long run every method that looks at nothing but weights gives each peer its weight's share,
// through failures too.
func TestLongRunShares(t *testing.T) {
	weights := []int{7, 3, 2, 1}
	for _, tc := range []struct {
		name   string
		method MethodSpec
		fail   int // every so many attempts fail; 0: none
		within float64
	}{
		{"round robin", MethodSpec{}, 0, 0.001},
		{"round robin, failing", MethodSpec{}, 50, 0.02},
		{"least_conn", MethodSpec{Name: "least_conn"}, 0, 0.001},
		{"random", MethodSpec{Name: "random"}, 0, 0.02},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var servers []Server
			for i, w := range weights {
				s := forgiving(server(fmt.Sprint("s", i), w))
				s.MaxFails, s.FailTimeout = 1000, time.Second // weights sink, nobody is disabled
				servers = append(servers, s)
			}
			l := newLab(t, Spec{Servers: servers, Method: tc.method})
			count := map[string]int{}
			const n = 13_000
			for i := range n {
				p, id := l.open(nil)
				count[id]++
				if tc.fail > 0 && i%tc.fail == 0 {
					p.End(Broken)
					l.wait(2 * time.Second)
				} else {
					p.End(Succeeded)
				}
			}
			for i, w := range weights {
				share, want := float64(count[fmt.Sprint("s", i)])/n, float64(w)/13
				if math.Abs(share-want) > tc.within {
					t.Errorf("weight %d: share %.3f, want %.3f within %.3f", w, share, want, tc.within)
				}
			}
		})
	}
}
