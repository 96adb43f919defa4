package balance

import (
	"hash/crc32"
	"math/rand/v2"
	"strconv"
	"testing"
)

// expected gives the candidates of a request in the order in which a hash comes to them, rejected ones included, as
// plainly as its rules can be written down. It is asked for as many as needed.
type expected func() int

func plainIPHash(servers []Server, network []byte) expected {
	h := 89
	return func() int {
		for _, b := range network {
			h = (h*113 + int(b)) % 6271
		}
		return walk(servers, h)
	}
}

func plainHash(servers []Server, key string) expected {
	sum, n := uint32(0), 0
	return func() int {
		text := key
		if n > 0 {
			text = strconv.Itoa(n) + key
		}
		n++
		sum += crc32.ChecksumIEEE([]byte(text)) >> 16 & 0x7fff
		return walk(servers, int(sum))
	}
}

// walk goes down the list by subtracting weights.
func walk(servers []Server, x int) int {
	total := 0
	for _, s := range servers {
		total += s.Weight
	}
	x %= total
	for i, s := range servers {
		if x -= s.Weight; x < 0 {
			return i
		}
	}
	panic("beyond the list")
}

func plainConsistent(servers []Server, key string) expected {
	r := newRing(servers)
	at := -1
	return func() int {
		if at++; at == 0 {
			for hash := crc32.ChecksumIEEE([]byte(key)); at < len(r.points) && r.points[at] < hash; {
				at++
			}
		}
		return int(r.owner[at%len(r.points)])
	}
}

// TestHashOrder compares the whole way of requests through an upstream: first choice, rejected candidates and retries,
// until patience ends.
func TestHashOrder(t *testing.T) {
	for _, name := range []string{"ip_hash", "hash", "consistent"} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(11, 12))
			for range 20 {
				spec := Spec{Method: hashes[name]}
				for i := range 2 + rng.IntN(5) {
					s := named(i, 1+rng.IntN(4))
					s.Down = rng.IntN(4) == 0
					spec.Servers = append(spec.Servers, s)
				}
				l := newLab(t, spec)
				for range 30 {
					l.compareOrder(name, someAsk(rng))
				}
			}
		})
	}
}

func (l *lab) compareOrder(name string, ask *Ask) {
	l.t.Helper()
	servers := l.g.Servers()
	next := plainHash(servers, string(ask.Key))
	switch name {
	case "ip_hash":
		client := ask.Client.As4()
		next = plainIPHash(servers, client[:3])
	case "consistent":
		next = plainConsistent(servers, string(ask.Key))
	}
	tried := map[int]bool{}
	p := l.g.Begin(NoLimit, ask)
	for rejected := 0; ; {
		if name == "consistent" && len(tried) > 0 {
			if rejected++; rejected > 20 { // the point of the last try is looked at once more
				return
			}
		}
		i := next()
		for ; servers[i].Down || tried[i]; i = next() {
			if rejected++; rejected > 20 {
				return // from here on it is round robin
			}
		}
		tried[i] = true
		peer, _ := p.Pick()
		if peer == nil || peer != l.g.peers[i] {
			l.t.Fatalf("%v %s: after %d tries and %d rejected came %v, want %s",
				ask.Client, ask.Key, len(tried)-1, rejected, peer, servers[i].Key.ID)
		}
		p.End(Undone)
	}
}
