package limit

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestConns(t *testing.T) {
	z := newConns(2)
	a, b, c := z.Key([]byte("a")), z.Key([]byte("b")), z.Key([]byte("c"))
	for _, step := range []struct {
		key  uint64
		most int
		in   bool
		want bool
	}{
		{a, 2, true, true}, {a, 2, true, true}, {a, 2, true, false}, {a, 3, true, true}, {a, 2, false, true}, {b, 1, true, true},
		{c, 1, true, false}, // the zone is full
		{b, 1, false, true}, {c, 1, true, true}, {a, 3, true, true}, {a, 3, true, false},
	} {
		if !step.in {
			z.Leave(step.key)
		} else if got := z.Enter(step.key, step.most); got != step.want {
			t.Errorf("%+v: %v", step, got)
		}
	}
	for range 3 {
		z.Leave(a)
	}
	z.Leave(c)
	if z.Len() != 0 {
		t.Errorf("%d keys left", z.Len())
	}
}

func TestConnsFromManySides(t *testing.T) {
	z := newConns(10_000)
	var in, most atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 3000 {
				if !z.Enter(z.Key([]byte("x")), 3) {
					continue
				}
				if n := in.Add(1); n > most.Load() {
					most.Store(n)
				}
				in.Add(-1)
				z.Leave(z.Key([]byte("x")))
			}
		})
	}
	all.Wait()
	if most.Load() > 3 || most.Load() == 0 || z.Len() != 0 {
		t.Errorf("%d at once, %d keys left", most.Load(), z.Len())
	}
}

func TestZonesOfManyGenerations(t *testing.T) {
	var zones Zones
	id := ID{Name: "z", Key: "$binary_remote_addr", Size: 1 << 20}
	first := zones.Conns(id)
	first.Enter(first.Key([]byte("a")), 1)
	if again := zones.Conns(id); again != first {
		t.Error("the next generation counts for itself")
	}
	other := id
	other.Key = "$host"
	if zones.Conns(other) == first {
		t.Error("other keys count in the same zone")
	}
	zones.ReleaseConns(id)
	if zones.Conns(id) != first {
		t.Error("a zone was forgotten that somebody holds")
	}
	zones.ReleaseConns(id)
	zones.ReleaseConns(id)
	if zones.Conns(id) == first {
		t.Error("a zone that nobody held is still there")
	}
	if zones.Requests(id) == nil || len(zones.requests) != 1 {
		t.Error("zones of requests have names of their own")
	}
}
