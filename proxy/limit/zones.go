package limit

import (
	"hash/maphash"
	"sync"
)

// perKey is what a zone is charged for one key, in bytes: about what it takes.
const perKey = 64

// capacity is how many keys a zone of that many bytes holds.
func capacity(size int64) int { return int(min(max(size/perKey, 1), 1<<31-1)) }

// Zones holds the zones that are in use, so that several generations of a configuration count in the same ones. The zero
// value is ready. It is safe for concurrent use.
type Zones struct {
	mu       sync.Mutex
	requests map[ID]*held[Requests]
	conns    map[ID]*held[Conns]
}

// ID is what makes a zone: one with another size, or with other keys, is another one, and begins empty.
type ID struct {
	Name string
	Key  string // text of the configuration
	Size int64  // bytes
}

type held[Z any] struct {
	zone    *Z
	holders int
}

// Requests gives a zone of requests, and holds it until ReleaseRequests.
func (z *Zones) Requests(id ID) *Requests {
	z.mu.Lock()
	defer z.mu.Unlock()
	return hold(&z.requests, id, newRequests)
}

// Conns gives a zone of connections, and holds it until ReleaseConns.
func (z *Zones) Conns(id ID) *Conns {
	z.mu.Lock()
	defer z.mu.Unlock()
	return hold(&z.conns, id, newConns)
}

// ReleaseRequests lets a zone go; with its last holder it is forgotten.
func (z *Zones) ReleaseRequests(id ID) {
	z.mu.Lock()
	defer z.mu.Unlock()
	drop(z.requests, id)
}

// ReleaseConns is the same for connections.
func (z *Zones) ReleaseConns(id ID) {
	z.mu.Lock()
	defer z.mu.Unlock()
	drop(z.conns, id)
}

func hold[Z any](all *map[ID]*held[Z], id ID, fresh func(keys int) *Z) *Z {
	h := (*all)[id]
	if h == nil {
		h = &held[Z]{zone: fresh(capacity(id.Size))}
		if *all == nil {
			*all = map[ID]*held[Z]{}
		}
		(*all)[id] = h
	}
	h.holders++
	return h.zone
}

func drop[Z any](all map[ID]*held[Z], id ID) {
	if h := all[id]; h != nil {
		if h.holders--; h.holders == 0 {
			delete(all, id)
		}
	}
}

// keys turns keys into numbers that nobody can foresee, so that a client can't choose a key that counts with another
// one. Two keys get the same number once in 2^64 pairs, and then share a count.
type keys struct{ seed maphash.Seed }

func (k *keys) of(key []byte) uint64 { return maphash.Bytes(k.seed, key) }

// maxShards bounds how many parts a zone has, each with a lock of its own; a small zone has fewer, since each part is
// full for itself.
const maxShards = 16

func shardsFor(keys int) int {
	n := 1
	for n < maxShards && keys/(2*n) >= 1024 {
		n *= 2
	}
	return n
}
