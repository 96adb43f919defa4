package balance

import "testing"

// fewest is a method as other packages would write it: it prefers the peers with the fewest open attempts.
type fewest struct{}

func init() { makers["fewest"] = func(MethodSpec) Method { return &fewest{} } }

func (*fewest) Choose(r *Round) Verdict {
	for i := range r.Len() {
		if r.Eligible(i) != Eligible {
			continue
		}
		if len(r.kept) > 0 {
			least := r.Conns(int(r.kept[0]))
			if r.Conns(i) > least {
				continue
			}
			if r.Conns(i) < least {
				r.kept = r.kept[:0]
			}
		}
		r.Keep(i)
	}
	if len(r.kept) == 1 {
		return Exactly
	}
	return Among
}

// TestMethodOrdersAndTiesAreShared: a method narrows, ties go to the shared arithmetic among those kept, and a unique
// best moves no weight.
func TestMethodOrdersAndTiesAreShared(t *testing.T) {
	spec := Spec{Servers: []Server{server("a", 2), server("b", 1), server("c", 1)}, Method: MethodSpec{Name: "fewest"}}
	g, err := NewGroup("u", Env{Clock: still()}, spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := picks(t, g, 8); got != "abcaabca" {
		t.Errorf("idle, it is round robin: %s", got)
	}
	var open []*Pass
	hold := func() string {
		p := g.Begin(NoLimit, nil)
		peer, why := p.Pick()
		if peer == nil {
			t.Fatal(why)
		}
		open = append(open, &p)
		return peer.ID()
	}
	if got := hold() + hold() + hold(); got != "abc" {
		t.Errorf("held ones: %s", got)
	}
	open[1].End(Succeeded)
	before := g.Snapshot()
	if got := hold(); got != "b" {
		t.Errorf("the only one with the fewest: %s", got)
	}
	after := g.Snapshot()
	for i := range before {
		if before[i].Current != after[i].Current {
			t.Errorf("a unique best moved weights: %+v -> %+v", before[i], after[i])
		}
	}
	for _, p := range open {
		p.End(Broken)
	}
	p := g.Begin(NoLimit, nil)
	if peer, why := p.Pick(); peer != nil || why != Failed {
		t.Errorf("all failed: %v, %v", peer, why)
	}
	if c, err := g.Prepare(spec); c != nil || err != nil {
		t.Error("the same method is no change")
	}
	c, err := g.Prepare(Spec{Servers: g.Servers()})
	if err != nil || c == nil {
		t.Fatal("another method is a change")
	}
	if c.Next.peers[0] != g.peers[0] {
		t.Error("a changed method keeps the peers")
	}
}
