package balance

import (
	"fmt"
	"testing"
	"time"
)

// TestManyTries: more peers than a pass holds marks for without memory.
func TestManyTries(t *testing.T) {
	var servers []Server
	for i := range 200 {
		s := server(fmt.Sprint("s", i), 1)
		s.MaxFails = 0 // never disabled: only the marks keep it from coming back
		servers = append(servers, s)
	}
	g := upstream(t, servers...)
	p := g.Begin(NoLimit, nil)
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
	p := upstream(t).Begin(NoLimit, nil)
	if _, why := p.Pick(); why != Empty {
		t.Errorf("no peers: %v", why)
	}
	p = upstream(t, down).Begin(NoLimit, nil)
	if _, why := p.Pick(); why != Down {
		t.Errorf("a single one that is down: %v", why)
	}
	g := upstream(t, down, drain, full)
	p = g.Begin(NoLimit, nil)
	if p.Tries() != 1 {
		t.Errorf("%d tries, want one for the only peer that is neither down nor draining", p.Tries())
	}
	p.Pick()
	q := g.Begin(NoLimit, nil)
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
	g, err := NewGroup("u", Env{Clock: func() int64 { return now }}, Spec{Servers: []Server{server("a", 1), server("b", 1)}})
	if err != nil {
		t.Fatal(err)
	}
	p := g.Begin(NoLimit, nil)
	p.Pick()
	p.End(Broken)
	now += 20 * int64(time.Second)
	q := g.Begin(NoLimit, nil)
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
