package balance

import (
	"fmt"
	"testing"
)

func many(n int) []Server {
	servers := make([]Server, n)
	for i := range servers {
		servers[i] = server(fmt.Sprint("s", i), 1+i%3)
	}
	return servers
}

func TestPickAllocatesNothing(t *testing.T) {
	for name, m := range map[string]Method{"round robin": nil, "method": &fewest{}} {
		g, err := NewGroup("u", SystemClock(), many(20), m)
		if err != nil {
			t.Fatal(err)
		}
		once := func() {
			p := g.Begin(NoLimit)
			for range 3 {
				p.Pick()
				p.End(Succeeded)
			}
		}
		once() // a method's scratch is made at the first pick
		if n := testing.AllocsPerRun(100, once); n != 0 {
			t.Errorf("%s: %v allocations in three picks", name, n)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{1, 3, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, err := NewGroup("u", SystemClock(), many(n), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				p := g.Begin(NoLimit)
				p.Pick()
				p.End(Succeeded)
			}
		})
	}
}

func BenchmarkPickParallel(b *testing.B) {
	g, err := NewGroup("u", SystemClock(), many(10), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p := g.Begin(NoLimit)
			p.Pick()
			p.End(Succeeded)
		}
	})
}

func BenchmarkPrepareJoin(b *testing.B) {
	servers := many(10_000)
	g, err := NewGroup("u", SystemClock(), servers, nil)
	if err != nil {
		b.Fatal(err)
	}
	more := many(10_001)
	for b.Loop() {
		if c, err := g.Prepare(more, nil); c == nil || err != nil {
			b.Fatal(err)
		}
	}
}
