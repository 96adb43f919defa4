package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRangesOfAnySize compares the guided lookup with a plain one at both edges of every range, also where one server
// outweighs all others and where the total does not fit in 32 bits.
func TestRangesOfAnySize(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 60 {
		servers := make([]Server, 1+r.IntN(700))
		for i := range servers {
			servers[i].Weight = 1 + r.IntN(1<<r.IntN(25))
			if round%3 == 0 {
				servers[i].Weight = 1
			}
		}
		servers[r.IntN(len(servers))].Weight = maxWeight
		ranges, begin := newRanges(servers), uint64(0)
		for i, end := range ranges.ends {
			if first, last := ranges.at(begin), ranges.at(end-1); first != i || last != i {
				t.Fatalf("range %d of %d: its edges are found in %d and %d", i, len(servers), first, last)
			}
			begin = end
		}
		for range 100 {
			hash := r.Uint32()
			if got, want := ranges.of(hash), ranges.at(uint64(hash)%ranges.total); got != want {
				t.Fatalf("hash %d of %d: %d, want %d", hash, ranges.total, got, want)
			}
		}
	}
}

// TestRingIsSearchedAnywhere compares the guided search with a binary one, on rings from one point on.
func TestRingIsSearchedAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 12 {
		ring := newRing(many(1 + n*n*3))
		if n == 0 {
			ring.points, ring.owner = ring.points[:1], ring.owner[:1]
			ring.lead()
		}
		for range 2000 {
			hash := r.Uint32()
			want, _ := slices.BinarySearch(ring.points, hash)
			if got := ring.find(hash); got != want%len(ring.points) {
				t.Fatalf("%d points: %d is found at %d, want %d", len(ring.points), hash, got, want)
			}
		}
	}
}

// TestNetworksAreHashedByteByByte: the remainder may be taken later than after each byte.
func TestNetworksAreHashedByteByByte(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		network := make([]byte, 3+13*r.IntN(2))
		for i := range network {
			network[i] = byte(r.Uint32()) | byte(0xff*r.IntN(2))
		}
		start := r.Uint32N(ipHashMod)
		want := start
		for _, b := range network {
			want = (want*ipHashRound + uint32(b)) % ipHashMod
		}
		if got := ipHashOver(start, network); got != want {
			t.Fatalf("%v from %d: %d, want %d", network, start, got, want)
		}
	}
}

// TestMomentsAreHandedIn: with the moments of a request at hand, no method reads the clock; and they count, not the clock's.
func TestMomentsAreHandedIn(t *testing.T) {
	for _, m := range everyMethod {
		for _, sticky := range []string{"", "learn"} {
			readings := 0
			clock := func() int64 { readings++; return 0 }
			g := group(t, Spec{Servers: many(3), Method: m, Sticky: StickySpec{Kind: sticky}}, Env{Clock: clock})
			const began = 1_800_000_000e9
			p := g.Begin(NoLimit, &Ask{Session: []byte("s")})
			peer, _ := p.PickAt(began)
			p.Learn([]byte("s"))
			p.HeaderAt(began + 30e6)
			p.EndAt(Succeeded, began+80e6)
			if readings != 0 {
				t.Errorf("%v, sticky %q: the clock was read %d times", m, sticky, readings)
			}
			if want := fmt.Sprint(int64(30), int64(80)); m.Name == "least_time" && fmt.Sprint(peer.times.header, peer.times.response) != want {
				t.Errorf("%v: took %v, want %s", m, peer.times, want)
			}
			p.PickAt(began + 90e6)
			p.EndAt(Broken, began+2000e6)
			if got := p.Peer().accessed; readings != 0 || got != 1_800_000_002 {
				t.Errorf("%v, sticky %q: failed at %d, the clock was read %d times", m, sticky, got, readings)
			}
		}
	}
}
