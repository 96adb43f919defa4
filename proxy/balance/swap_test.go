package balance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// still is a clock that stands at a moment.
func still() Clock { return func() int64 { return time.Unix(1_800_000_000, 0).UnixNano() } }

// server is one of weight w with nginx's defaults.
func server(id string, w int) Server {
	return Server{Key: Key{ID: id}, Addr: id + ":80", Incarnation: 1, Weight: w, MaxFails: 1, FailTimeout: 10 * time.Second}
}

func group(t testing.TB, servers ...Server) *Group {
	t.Helper()
	g, err := NewGroup("u", still(), servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// next swaps the group's servers.
func (g *Group) next(t testing.TB, servers ...Server) *Group {
	t.Helper()
	c, err := g.Prepare(servers, g.method)
	if err != nil {
		t.Fatal(err)
	}
	if c == nil {
		return g
	}
	Swap([]*Change{c}, func() {})
	return c.Next
}

// picks makes n requests that all succeed and gives the ids.
func picks(t testing.TB, g *Group, n int) string {
	t.Helper()
	var ids strings.Builder
	for range n {
		p := g.Begin(NoLimit)
		peer, why := p.Pick()
		if peer == nil {
			t.Fatalf("nobody to give: %v", why)
		}
		ids.WriteString(peer.ID())
		p.End(Succeeded)
	}
	return ids.String()
}

// TestSwapCarriesState is what a change of the topology does to the state of peers.
func TestSwapCarriesState(t *testing.T) {
	type state struct{ weight, effective, current, fails, conns int }
	full := func(w, e, c int) state { return state{w, e, c, 2, 1} }
	for _, tc := range []struct {
		name   string
		before state
		change func(*Server)
		want   state
	}{
		{"nothing", full(10, 10, 7), func(*Server) {}, full(10, 10, 7)},
		{"weight up, effective whole", full(10, 10, 7), func(s *Server) { s.Weight = 20 }, full(20, 20, 14)},
		{"weight up, effective reduced", full(10, 5, 7), func(s *Server) { s.Weight = 20 }, full(20, 5, 14)},
		{"weight down, effective whole", full(10, 10, 7), func(s *Server) { s.Weight = 1 }, full(1, 1, 0)},
		{"weight down, effective above it", full(10, 5, 7), func(s *Server) { s.Weight = 3 }, full(3, 3, 2)},
		{"weight down, effective below it", full(10, 2, -7), func(s *Server) { s.Weight = 3 }, full(3, 2, -2)},
		{"current is cut towards zero", full(100, 100, -99), func(s *Server) { s.Weight = 10 }, full(10, 10, -9)},
		{"max_fails", full(10, 5, 7), func(s *Server) { s.MaxFails = 9 }, full(10, 5, 7)},
		{"down", full(10, 5, 7), func(s *Server) { s.Down = true }, full(10, 5, 7)},
		{"new incarnation", full(10, 5, 7), func(s *Server) { s.Incarnation = 2 }, state{10, 5, 7, 0, 0}},
		{"new incarnation and weight", full(10, 10, 7), func(s *Server) { s.Incarnation, s.Weight = 2, 20 }, state{20, 20, 14, 0, 0}},
		{"moved", full(10, 5, 7), func(s *Server) { s.Addr = "elsewhere:80" }, state{10, 5, 7, 0, 0}},
		{"another instance", full(10, 5, 7), func(s *Server) { s.Key.ID = "z" }, state{10, 10, 0, 0, 0}},
		{"main to backup", full(10, 5, 7), func(s *Server) { s.Key.Backup = true }, state{10, 10, 0, 0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := server("a", tc.before.weight)
			g := group(t, a, server("b", 1))
			p := g.peers[0]
			p.effective, p.current, p.fails, p.conns = tc.before.effective, tc.before.current, tc.before.fails, tc.before.conns
			tc.change(&a)
			q := g.next(t, a, server("b", 1)).peers[0]
			if got := (state{q.weight, q.effective, q.current, q.fails, q.conns}); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if same := p == q; same == p.Gone() {
				t.Errorf("same peer %v, old one gone %v", same, p.Gone())
			}
		})
	}
}

func TestUnchangedServersMakeNoChange(t *testing.T) {
	g := group(t, server("a", 1), server("b", 2))
	if c, err := g.Prepare([]Server{server("a", 1), server("b", 2)}, nil); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := g.Prepare([]Server{server("a", 1), server("a", 2)}, nil); !errors.Is(err, ErrDuplicateKey) {
		t.Errorf("two servers of one key: %v", err)
	}
}

// TestPreparedChangeTouchesNothing: what lives is changed by Swap alone.
func TestPreparedChangeTouchesNothing(t *testing.T) {
	g := group(t, server("a", 1), server("b", 1))
	c, err := g.Prepare([]Server{server("a", 5)}, nil)
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	if got := picks(t, g, 4); got != "abab" {
		t.Errorf("before the swap: %s", got)
	}
	Swap([]*Change{c}, func() {})
	if got := picks(t, g, 4); got != "aaaa" {
		t.Errorf("b is gone, in the old group too: %s", got)
	}
}

// TestGoneInAnOldGroup: a request that began before the swap is not given who left, not even for its retry.
func TestGoneInAnOldGroup(t *testing.T) {
	g := group(t, server("a", 1), server("b", 1), server("c", 1))
	p := g.Begin(NoLimit)
	if peer, _ := p.Pick(); peer.ID() != "a" {
		t.Fatal(peer.ID())
	}
	next := g.next(t, server("a", 1), server("c", 1))
	p.End(Broken)
	if peer, _ := p.Pick(); peer.ID() != "c" {
		t.Fatalf("the retry went to %s", peer.ID())
	}
	p.End(Broken)
	if peer, why := p.Pick(); peer != nil || why != Failed {
		t.Fatalf("%v, %v", peer, why)
	}
	if s := next.Snapshot(); s[0].Fails != 1 || s[1].Fails != 1 || s[0].Conns+s[1].Conns != 0 {
		t.Errorf("what the old group's request did counts in the new one: %+v", s)
	}
	single := group(t, server("x", 1))
	q := single.Begin(NoLimit)
	Swap([]*Change{single.Removal()}, func() {})
	if peer, why := q.Pick(); peer != nil || why != Gone {
		t.Errorf("a removed upstream gave %v, %v", peer, why)
	}
}

// TestEndAfterTheSwap: an attempt that ends after its process was replaced frees that process, not the new one.
func TestEndAfterTheSwap(t *testing.T) {
	one := server("a", 1)
	one.MaxConns = 1
	g := group(t, one, server("b", 1))
	p := g.Begin(NoLimit)
	p.Pick()
	again := one
	again.Incarnation = 2
	next := g.next(t, again, server("b", 1))
	q := next.Begin(NoLimit)
	q.Pick() // b, whose turn it is
	r := next.Begin(NoLimit)
	if peer, why := r.Pick(); peer == nil || peer.ID() != "a" || peer.Incarnation() != 2 {
		t.Fatalf("the new process is free: %v, %v", peer, why)
	}
	p.End(Broken)
	if s := next.Snapshot()[0]; s.Conns != 1 || s.Fails != 0 {
		t.Errorf("the old process's end changed the new one: %+v", s)
	}
}

// TestJoinersAndLeaversMoveNoShare: over joins and leaves, those who stay keep the shares of their weights.
func TestJoinersAndLeaversMoveNoShare(t *testing.T) {
	g := group(t, server("a", 3), server("b", 1))
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
			g := group(t, servers...)
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

// TestWeightChangeIsInForceAtOnce, and gives nobody a run of picks.
func TestWeightChangeIsInForceAtOnce(t *testing.T) {
	g := group(t, server("a", 100), server("b", 100))
	picks(t, g, 33)
	g = g.next(t, server("a", 1), server("b", 1))
	if got := picks(t, g, 20); strings.Contains(got, "aaa") || strings.Contains(got, "bbb") {
		t.Errorf("after 100:100 -> 1:1: %s", got)
	}
	g = group(t, server("a", 10), server("b", 1))
	picks(t, g, 17)
	g = g.next(t, server("a", 1), server("b", 1))
	if got := picks(t, g, 20); strings.Count(got, "a") > 11 {
		t.Errorf("after 10:1 -> 1:1: %s", got)
	}
}

// TestManyTries: more peers than a pass holds marks for without memory.
func TestManyTries(t *testing.T) {
	var servers []Server
	for i := range 200 {
		s := server(fmt.Sprint("s", i), 1)
		s.MaxFails = 0 // never disabled: only the marks keep it from coming back
		servers = append(servers, s)
	}
	g := group(t, servers...)
	p := g.Begin(NoLimit)
	seen := map[string]bool{}
	for {
		peer, why := p.Pick()
		if peer == nil {
			if why != Tried || len(seen) != 200 || p.Tries() != 0 {
				t.Fatalf("%v after %d peers, %d tries left", why, len(seen), p.Tries())
			}
			return
		}
		if seen[peer.ID()] {
			t.Fatalf("%s twice", peer.ID())
		}
		seen[peer.ID()] = true
		p.End(Broken)
	}
}

func TestReasons(t *testing.T) {
	down, drain, full := server("a", 1), server("b", 1), server("c", 1)
	down.Down, drain.Drain, full.MaxConns = true, true, 1
	p := group(t).Begin(NoLimit)
	if _, why := p.Pick(); why != Empty {
		t.Errorf("no peers: %v", why)
	}
	p = group(t, down).Begin(NoLimit)
	if _, why := p.Pick(); why != Down {
		t.Errorf("a single one that is down: %v", why)
	}
	g := group(t, down, drain, full)
	p = g.Begin(NoLimit)
	if p.Tries() != 1 {
		t.Errorf("%d tries, want one for the only peer that is neither down nor draining", p.Tries())
	}
	p.Pick()
	q := g.Begin(NoLimit)
	if _, why := q.Pick(); why != Full {
		t.Errorf("full: %v", why)
	}
	s := g.Snapshot()
	if got := s[0].Reason + s[1].Reason + s[2].Reason; got != "downdrainingfull" {
		t.Errorf("snapshot: %s", got)
	}
}

// TestUndoneLeavesNoTrace: an attempt that was not begun, or whose client left, costs no try and clears no failure.
func TestUndoneLeavesNoTrace(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UnixNano()
	g, err := NewGroup("u", func() int64 { return now }, []Server{server("a", 1), server("b", 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := g.Begin(NoLimit)
	p.Pick()
	p.End(Broken)
	now += 20 * int64(time.Second)
	q := g.Begin(NoLimit)
	for n, probed := 0, false; !probed; n++ {
		peer, why := q.Pick()
		if peer == nil || n > 10 {
			t.Fatalf("no probe after %d picks: %v", n, why)
		}
		probed = peer.ID() == "a"
		q.End(Undone)
	}
	if s := g.Snapshot()[0]; s.Fails != 1 || s.Conns != 0 {
		t.Errorf("a probe whose client left proves nothing: %+v", s)
	}
	if q.Tries() != 2 {
		t.Errorf("%d tries left, want both: the attempts were undone", q.Tries())
	}
}

// TestConcurrentPicksAndSwaps is for the race detector, and counts that nothing is lost.
func TestConcurrentPicksAndSwaps(t *testing.T) {
	var current atomic.Pointer[Group]
	current.Store(group(t, server("a", 3), server("b", 1), server("keep", 1)))
	first := current.Load()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				p := current.Load().Begin(NoLimit)
				for p.Tries() > 0 {
					peer, _ := p.Pick()
					if peer == nil {
						break
					}
					p.End(Result((n + i) % 3))
				}
				_ = current.Load().Snapshot()
			}
		})
	}
	for n := range 500 {
		a := server("a", 1+n%7)
		a.Incarnation = int64(n / 10)
		servers := []Server{a, server("keep", 1), server(fmt.Sprint("j", n%5), 2)}
		c, err := current.Load().Prepare(servers, nil)
		if err != nil {
			t.Error(err)
			break
		}
		Swap([]*Change{c}, func() { current.Store(c.Next) })
	}
	close(stop)
	wg.Wait()
	for _, s := range append(first.Snapshot(), current.Load().Snapshot()...) {
		if s.Conns != 0 {
			t.Errorf("open attempts left: %+v", s)
		}
	}
}

// TestMatchFindsEveryPeer compares the matching of peers with the plain way, over random edits of the list.
func TestMatchFindsEveryPeer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ids := func(n int) []Server {
		var out []Server
		for _, i := range r.Perm(12)[:n] {
			out = append(out, server(string(rune('a'+i)), 1))
		}
		return out
	}
	g := group(t, ids(6)...)
	for range 3000 {
		servers := ids(r.IntN(10))
		if r.IntN(2) == 0 { // an edit in place, as topologies have
			servers = slices.Clone(g.servers)
			if len(servers) > 0 {
				i := r.IntN(len(servers))
				servers = slices.Delete(servers, i, i+1)
			}
		}
		c, err := g.Prepare(servers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		old := map[string]*Peer{}
		for _, p := range g.peers {
			old[p.ID()] = p
		}
		for i, p := range c.Next.peers {
			if p.ID() != servers[i].Key.ID || (old[p.ID()] != nil && old[p.ID()] != p) {
				t.Fatalf("place %d of %v got peer %s", i, servers, p.ID())
			}
			if old[p.ID()] == nil && !slices.Contains(c.Joined, p) {
				t.Fatalf("%s is not told as joined", p.ID())
			}
			delete(old, p.ID())
		}
		if len(old) != len(c.Left) {
			t.Fatalf("%d left, told are %d", len(old), len(c.Left))
		}
		Swap([]*Change{c}, func() {})
		g = c.Next
	}
	for _, bad := range [][]Server{{server("x", 1), server("y", 1), server("x", 1)}, {server("z", 1), server("z", 1)}} {
		if _, err := g.Prepare(bad, nil); !errors.Is(err, ErrDuplicateKey) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	ab := group(t, server("a", 1), server("b", 1))
	if _, err := ab.Prepare([]Server{server("a", 1), server("b", 1), server("a", 1)}, nil); !errors.Is(err, ErrDuplicateKey) {
		t.Errorf("a double of one that stays: %v", err)
	}
}
