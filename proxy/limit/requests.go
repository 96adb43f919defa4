package limit

import (
	"hash/maphash"
	"sync"
	"time"
)

// Requests is a zone of limit_req: for each key how many requests came beyond its rate. When it is full the key that was
// seen longest ago is forgotten. It is safe for concurrent use.
type Requests struct {
	keys
	shards []requestShard
}

type requestShard struct {
	mu    sync.Mutex
	most  int
	at    map[uint64]int32 // into nodes
	nodes []requestNode    // [0] is the list's head: next is the key seen last, before the one seen longest ago
	_     [64]byte         // the next shard's lock is on another cache line
}

type requestNode struct {
	key          uint64
	last         int64 // milliseconds
	excess       int64 // thousandths of a request
	next, before int32
}

func newRequests(most int) *Requests {
	n := shardsFor(most)
	z := &Requests{keys: keys{maphash.MakeSeed()}, shards: make([]requestShard, n)}
	for i := range z.shards {
		z.shards[i] = requestShard{most: most / n, at: map[uint64]int32{}, nodes: make([]requestNode, 1)}
	}
	return z
}

func (z *Requests) shard(key uint64) *requestShard { return &z.shards[key%uint64(len(z.shards))] }

// Key is the number of a key, for the other methods.
func (z *Requests) Key(text []byte) uint64 { return z.of(text) }

// Look tells the excess that one more request of this key has now, in thousandths, without counting it. Rate is in
// thousandths of a request per second, now in milliseconds.
func (z *Requests) Look(key uint64, rate, now int64) (excess int64) {
	s := z.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.at[key]
	if !ok {
		return 0
	}
	s.touch(i)
	excess, _ = s.nodes[i].excessAt(rate, now)
	return excess
}

// Take counts one more request of this key unless its excess would be above burst; then ok is false and nothing is
// counted.
func (z *Requests) Take(key uint64, rate, burst, now int64) (excess int64, ok bool) {
	s := z.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, known := s.at[key]
	if !known {
		s.add(key, now)
		return 0, true
	}
	s.touch(i)
	n := &s.nodes[i]
	excess, ms := n.excessAt(rate, now)
	if excess > burst {
		return excess, false
	}
	n.excess = excess
	if ms > 0 {
		n.last = now
	}
	return excess, true
}

// farBack is how far the clock may have gone back before it is taken for another one, in milliseconds.
const farBack = 60_000 // as in nginx

// excessAt is the key's excess with one more request, and how long ago the last one was.
func (n *requestNode) excessAt(rate, now int64) (excess, ms int64) {
	ms = now - n.last
	if ms < -farBack {
		ms = 1
	} else if ms < 0 {
		ms = 0
	}
	if ms > (n.excess+1000)*1000/rate+1 { // it is nothing by then, and the product could overflow
		return 0, ms
	}
	return max(n.excess-rate*ms/1000+1000, 0), ms
}

// add makes a key known, and forgets another one for it in a full shard.
func (s *requestShard) add(key uint64, now int64) {
	i := int32(len(s.nodes))
	if len(s.at) >= s.most {
		i = s.nodes[0].before
		delete(s.at, s.nodes[i].key)
		s.unlink(i)
	} else {
		s.nodes = append(s.nodes, requestNode{})
	}
	s.nodes[i] = requestNode{key: key, last: now}
	s.at[key] = i
	s.link(i)
}

func (s *requestShard) touch(i int32) {
	if s.nodes[0].next != i {
		s.unlink(i)
		s.link(i)
	}
}

func (s *requestShard) link(i int32) {
	first := s.nodes[0].next
	s.nodes[i].next, s.nodes[i].before = first, 0
	s.nodes[first].before, s.nodes[0].next = i, i
}

func (s *requestShard) unlink(i int32) {
	n := &s.nodes[i]
	s.nodes[n.before].next, s.nodes[n.next].before = n.next, n.before
}

// Len is how many keys the zone knows.
func (z *Requests) Len() (sum int) {
	for i := range z.shards {
		z.shards[i].mu.Lock()
		sum += len(z.shards[i].at)
		z.shards[i].mu.Unlock()
	}
	return sum
}

// Wait is how long a request with an excess waits, so that it keeps to the rate: as long as what is beyond delay takes.
func Wait(excess, delay, rate int64) time.Duration {
	if excess <= delay {
		return 0
	}
	return time.Duration((excess-delay)*1000/rate) * time.Millisecond
}
