package limit

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

const epoch = int64(1_800_000_000_000)

// bucket is the leaky bucket as a formula says it, of one key.
type bucket struct {
	known        bool
	last, excess int64
}

func (b *bucket) take(rate, burst, now int64) (int64, bool) {
	if !b.known {
		*b = bucket{true, now, 0}
		return 0, true
	}
	ms := max(now-b.last, 0)
	excess := max(b.excess-rate*ms/1000+1000, 0)
	if excess > burst {
		return excess, false
	}
	if b.excess = excess; ms > 0 {
		b.last = now
	}
	return excess, true
}

func TestRequestsAreALeakyBucket(t *testing.T) {
	for _, rate := range []int64{16, 1000, 10_000, 333_000, 1_000_000_000} {
		for _, burst := range []int64{0, 1000, 5000, 1_000_000} {
			z := newRequests(1000)
			random := rand.New(rand.NewPCG(uint64(rate), uint64(burst)))
			buckets := map[string]*bucket{"a": {}, "b": {}, "": {}}
			now := epoch
			for i := range 3000 {
				now += random.Int64N(max(3_000_000/rate, 3))
				for name, b := range buckets {
					if random.IntN(2) == 0 {
						continue
					}
					key := z.Key([]byte(name))
					wantExcess, wantOK := b.take(rate, burst, now)
					if looked := z.Look(key, rate, now); wantOK != (looked <= burst) {
						t.Fatalf("rate %d burst %d, request %d: looks like %d", rate, burst, i, looked)
					}
					if excess, ok := z.Take(key, rate, burst, now); excess != wantExcess || ok != wantOK {
						t.Fatalf("rate %d burst %d, request %d of %q: %d, %v, want %d, %v", rate, burst, i, name, excess, ok, wantExcess, wantOK)
					}
				}
			}
		}
	}
}

func TestClockOfRequests(t *testing.T) {
	for name, c := range map[string]struct{ second, want int64 }{
		"at once": {0, 1000}, "half a second": {500, 500}, "back a little": {-59_999, 1000}, "back far": {-60_001, 999}, "a century": {100 * 365 * 86_400_000, 0},
	} {
		z := newRequests(10)
		key := z.Key([]byte("a"))
		z.Take(key, 1000, 0, epoch)
		if got, _ := z.Take(key, 1000, 5000, epoch+c.second); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestLeastRecentlyUsedIsForgotten(t *testing.T) {
	z := newRequests(3)
	key := func(i int) uint64 { return z.Key([]byte{byte(i)}) }
	for i := range 3 {
		z.Take(key(i), 1000, 9000, epoch)
	}
	z.Look(key(0), 1000, epoch) // 1 is the one seen longest ago now
	z.Take(key(3), 1000, 9000, epoch)
	for i, known := range []bool{true, false, true, true} {
		if got := z.Look(key(i), 1000, epoch) > 0; got != known {
			t.Errorf("key %d: known %v", i, got)
		}
	}
	if z.Len() != 3 {
		t.Errorf("%d keys", z.Len())
	}
}

// However many keys come, a zone takes its size.
func TestSizeOfRequests(t *testing.T) {
	var zones Zones
	id := ID{Name: "z", Size: 1 << 20}
	z := zones.Requests(id)
	defer zones.ReleaseRequests(id)
	for i := range 200_000 {
		z.Take(z.Key(binary.BigEndian.AppendUint64(nil, uint64(i))), 1000, 0, epoch)
	}
	if n := z.Len(); n > 1<<20/perKey || n < 1<<20/perKey*99/100 {
		t.Errorf("%d keys", n)
	}
	nodes := 0
	for i := range z.shards {
		nodes += cap(z.shards[i].nodes)
	}
	if nodes > 3*z.Len()/2 {
		t.Errorf("room for %d keys, of %d", nodes, z.Len())
	}
}

func TestWait(t *testing.T) {
	for _, c := range []struct{ excess, delay, rate, ms int64 }{
		{0, 0, 1000, 0}, {1000, 0, 1000, 1000}, {500, 0, 10_000, 50}, {3000, 2000, 1000, 1000}, {2000, 2000, 1000, 0}, {1, 0, 16, 62},
	} {
		if got := Wait(c.excess, c.delay, c.rate); got != time.Duration(c.ms)*time.Millisecond {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestRequestsFromManySides(t *testing.T) {
	z := newRequests(4096)
	var all sync.WaitGroup
	passed := make([]int, 4)
	for i := range passed {
		all.Go(func() {
			for n := range 5000 {
				if _, ok := z.Take(z.Key([]byte("same")), 1000, 999_000, epoch); ok {
					passed[i]++
				}
				z.Take(z.Key(binary.BigEndian.AppendUint32(nil, uint32(n*4+i))), 1000, 0, epoch)
			}
		})
	}
	all.Wait()
	if sum := passed[0] + passed[1] + passed[2] + passed[3]; sum != 1000 {
		t.Errorf("%d passed", sum)
	}
}

func TestAllocations(t *testing.T) {
	if racing {
		t.Skip("the race detector allocates")
	}
	z, c, key := newRequests(100), newConns(100), []byte("\x7f\x00\x00\x01")
	n := testing.AllocsPerRun(1000, func() {
		z.Look(z.Key(key), 1000, epoch)
		z.Take(z.Key(key), 1000, 1000, epoch)
		if c.Enter(c.Key(key), 1) {
			c.Leave(c.Key(key))
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTake(b *testing.B) {
	z, now := newRequests(1<<16), epoch
	key := []byte("\x0a\x00\x00\x00")
	b.ReportAllocs()
	for b.Loop() {
		now++
		key[3]++
		z.Take(z.Key(key), 1_000_000, 1000, now)
	}
}

func BenchmarkEnter(b *testing.B) {
	z := newConns(1 << 16)
	key := []byte("\x0a\x00\x00\x00")
	b.ReportAllocs()
	for b.Loop() {
		if z.Enter(z.Key(key), 5) {
			z.Leave(z.Key(key))
		}
	}
}
