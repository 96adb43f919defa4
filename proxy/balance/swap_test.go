package balance

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

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
			g := upstream(t, a, server("b", 1))
			p := g.peers[0]
			p.effective, p.current, p.fails, p.conns = tc.before.effective, tc.before.current, int32(tc.before.fails), int32(tc.before.conns)
			tc.change(&a)
			q := g.next(t, a, server("b", 1)).peers[0]
			if got := (state{q.weight, q.effective, q.current, int(q.fails), int(q.conns)}); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if same := p == q; same == p.Gone() {
				t.Errorf("same peer %v, old one gone %v", same, p.Gone())
			}
		})
	}
}

func TestUnchangedServersMakeNoChange(t *testing.T) {
	g := upstream(t, server("a", 1), server("b", 2))
	if c, err := g.Prepare(Spec{Servers: []Server{server("a", 1), server("b", 2)}}); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := g.Prepare(Spec{Servers: []Server{server("a", 1), server("a", 2)}}); !errors.Is(err, ErrDuplicateKey) {
		t.Errorf("two servers of one key: %v", err)
	}
}

// TestPreparedChangeTouchesNothing: what lives is changed by Swap alone.
func TestPreparedChangeTouchesNothing(t *testing.T) {
	g := upstream(t, server("a", 1), server("b", 1))
	c, err := g.Prepare(Spec{Servers: []Server{server("a", 5)}})
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
	g := upstream(t, server("a", 1), server("b", 1), server("c", 1))
	p := g.Begin(NoLimit, nil)
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
	single := upstream(t, server("x", 1))
	q := single.Begin(NoLimit, nil)
	Swap([]*Change{single.Removal()}, func() {})
	if peer, why := q.Pick(); peer != nil || why != Gone {
		t.Errorf("a removed upstream gave %v, %v", peer, why)
	}
}

// TestEndAfterTheSwap: an attempt that ends after its process was replaced frees that process, not the new one.
func TestEndAfterTheSwap(t *testing.T) {
	one := server("a", 1)
	one.MaxConns = 1
	g := upstream(t, one, server("b", 1))
	p := g.Begin(NoLimit, nil)
	p.Pick()
	again := one
	again.Incarnation = 2
	next := g.next(t, again, server("b", 1))
	q := next.Begin(NoLimit, nil)
	q.Pick() // b, whose turn it is
	r := next.Begin(NoLimit, nil)
	if peer, why := r.Pick(); peer == nil || peer.ID() != "a" || peer.Incarnation() != 2 {
		t.Fatalf("the new process is free: %v, %v", peer, why)
	}
	p.End(Broken)
	if s := next.Snapshot()[0]; s.Conns != 1 || s.Fails != 0 {
		t.Errorf("the old process's end changed the new one: %+v", s)
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
	g := upstream(t, ids(6)...)
	for range 3000 {
		servers := ids(r.IntN(10))
		if r.IntN(2) == 0 { // an edit in place, as topologies have
			servers = slices.Clone(g.servers)
			if len(servers) > 0 {
				i := r.IntN(len(servers))
				servers = slices.Delete(servers, i, i+1)
			}
		}
		c, err := g.Prepare(Spec{Servers: servers})
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
		if _, err := g.Prepare(Spec{Servers: bad}); !errors.Is(err, ErrDuplicateKey) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	ab := upstream(t, server("a", 1), server("b", 1))
	if _, err := ab.Prepare(Spec{Servers: []Server{server("a", 1), server("b", 1), server("a", 1)}}); !errors.Is(err, ErrDuplicateKey) {
		t.Errorf("a double of one that stays: %v", err)
	}
}
