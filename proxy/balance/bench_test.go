package balance

import (
	"fmt"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"
	"unsafe"
)

func many(n int) []Server {
	servers := make([]Server, n)
	for i := range servers {
		servers[i] = server(fmt.Sprint("s", i), 1+i%3)
	}
	return servers
}

var everyMethod = []MethodSpec{
	{}, {Name: "least_conn"}, {Name: "least_time"}, {Name: "least_time", LastByte: true, Inflight: true}, {Name: "ip_hash"},
	{Name: "hash"}, {Name: "hash", Consistent: true}, {Name: "random"}, {Name: "random", Two: true},
}

func (m MethodSpec) benchName() string {
	b := []byte(m.String())
	for i := range b {
		if b[i] == ' ' {
			b[i] = '_'
		}
	}
	return string(b)
}

// asks are requests of different clients.
func asks() []*Ask {
	out := make([]*Ask, 256)
	for i := range out {
		ip := netip.AddrFrom4([4]byte{10, byte(i), byte(i * 7), 1})
		out[i] = &Ask{Client: ip, Key: []byte("/key/" + strconv.Itoa(i)), Session: []byte(digest(server(fmt.Sprint("s", i%10), 1).Addr))}
	}
	return out
}

// handed is a request as a proxy makes it: it has read the clock for its own log, and hands those moments in.
func handed(g *Group, ask *Ask, now int64) {
	p := g.Begin(NoLimit, ask)
	p.PickAt(now)
	p.HeaderAt(now + 1e6)
	p.EndAt(Succeeded, now+2e6)
}

// BenchmarkPick is a pick and the end of its attempt, without the clock (see BenchmarkClock: one reading serves a pick, and
// one more the end of a failed attempt or of a timed one): with -cpu 2, by two goroutines at one upstream.
func BenchmarkPick(b *testing.B) {
	for _, m := range everyMethod {
		for _, n := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", m.benchName(), n), func(b *testing.B) {
				g := group(b, Spec{Servers: many(n), Method: m}, Env{Clock: SystemClock()})
				for i, p := range g.peers { // they have all answered lately
					p.checked = g.env.Clock.moment().second
					p.times = times{header: int64(1 + i%100), response: int64(10 + i%1000)}
				}
				benchmarkPick(b, g)
			})
		}
	}
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("sticky_cookie/%d", n), func(b *testing.B) {
			benchmarkPick(b, group(b, Spec{Servers: many(n), Sticky: StickySpec{Kind: "cookie"}}, Env{Clock: SystemClock()}))
		})
		b.Run(fmt.Sprintf("scattered/%d", n), func(b *testing.B) {
			benchmarkPick(b, scattered(b, n))
		})
	}
}

func benchmarkPick(b *testing.B, g *Group) {
	var begun atomic.Int32
	all, now := asks(), g.env.Clock()
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := int(begun.Add(100)); pb.Next(); i++ {
			handed(g, all[i%len(all)], now+int64(i)*1e3)
		}
	})
}

// scattered is an upstream whose peers have all been replaced one by one, so that they lie anywhere in memory.
func scattered(b *testing.B, n int) *Group {
	servers := many(n)
	g := group(b, Spec{Servers: servers}, Env{Clock: SystemClock()})
	var between [][]byte
	for k := range n {
		i := k * 7919 % n
		servers = append([]Server{}, servers...)
		servers[i].Incarnation++
		g = g.next(b, servers...)
		between = append(between, make([]byte, 64*(1+k%5)))
	}
	_ = between
	return g
}

// BenchmarkClock is one reading of the clock.
func BenchmarkClock(b *testing.B) {
	clock := SystemClock()
	for b.Loop() {
		clock.moment()
	}
}

func BenchmarkPrepareJoin(b *testing.B) {
	g := group(b, Spec{Servers: many(10_000)}, Env{})
	more := many(10_001)
	for b.Loop() {
		if c, err := g.Prepare(Spec{Servers: more}); c == nil || err != nil {
			b.Fatal(err)
		}
	}
}

func TestPickAllocatesNothing(t *testing.T) {
	all := asks()
	for _, m := range append(everyMethod, MethodSpec{Name: "fewest"}) {
		g := group(t, Spec{Servers: many(20), Method: m}, Env{})
		i := 0
		thrice := func() {
			i++
			p := g.Begin(NoLimit, all[i%len(all)])
			for range 3 {
				p.Pick()
				p.Header()
				p.End(Succeeded)
			}
		}
		thrice() // a method's scratch is made at the first pick
		if n := testing.AllocsPerRun(100, thrice); n != 0 {
			t.Errorf("%s: %v allocations in three picks", m, n)
		}
	}
}

// TestCellIsOneCacheLine: what a pick looks at of a peer is one line, and peers made together keep it so.
func TestCellIsOneCacheLine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("sizes are those of 64-bit machines")
	}
	if c, p := unsafe.Sizeof(cell{}), unsafe.Sizeof(Peer{}); c > 64 || p%64 != 0 {
		t.Errorf("a cell has %d bytes, want at most 64; a peer %d, want a multiple of 64", c, p)
	}
}
