package limit

import (
	"hash/maphash"
	"sync"
)

// Conns is a zone of limit_conn: for each key how many connections have a request in work. It is safe for concurrent use.
type Conns struct {
	keys
	shards []connShard
}

type connShard struct {
	mu   sync.Mutex
	most int
	open map[uint64]int32
	_    [64]byte
}

func newConns(most int) *Conns {
	n := shardsFor(most)
	z := &Conns{keys: keys{maphash.MakeSeed()}, shards: make([]connShard, n)}
	for i := range z.shards {
		z.shards[i] = connShard{most: most / n, open: map[uint64]int32{}}
	}
	return z
}

func (z *Conns) shard(key uint64) *connShard { return &z.shards[key%uint64(len(z.shards))] }

// Key is the number of a key, for the other methods.
func (z *Conns) Key(text []byte) uint64 { return z.of(text) }

// Enter counts one in, unless most of this key are in already, or the zone is full of other keys.
func (z *Conns) Enter(key uint64, most int) bool {
	s := z.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.open[key]
	if int(n) >= most || n == 0 && len(s.open) >= s.most {
		return false
	}
	s.open[key] = n + 1
	return true
}

// Leave counts out what Enter counted in.
func (z *Conns) Leave(key uint64) {
	s := z.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.open[key]; n > 1 {
		s.open[key] = n - 1
	} else {
		delete(s.open, key)
	}
}

// Len is how many keys have connections.
func (z *Conns) Len() (sum int) {
	for i := range z.shards {
		z.shards[i].mu.Lock()
		sum += len(z.shards[i].open)
		z.shards[i].mu.Unlock()
	}
	return sum
}
