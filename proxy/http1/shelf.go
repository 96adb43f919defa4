package http1

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// limits say which connections are kept. Zero durations and a zero of requests: no limit.
type limits struct {
	idle     int           // unused ones at the same time
	requests int           // that a connection has carried when it is closed
	age      time.Duration // at which it is not kept any more
	timeout  time.Duration // unused
}

// limitsOf are an upstream's, with nginx's defaults.
func limitsOf(k topology.Keepalive) limits {
	l := limits{idle: k.Idle, requests: k.Requests, age: k.Time, timeout: k.Timeout}
	if l.idle < 0 {
		l.idle = topology.DefaultKeepalive
	}
	if l.requests <= 0 {
		l.requests = topology.DefaultKeepaliveRequests
	}
	if l.age <= 0 {
		l.age = topology.DefaultKeepaliveTime
	}
	if l.timeout <= 0 {
		l.timeout = topology.DefaultKeepaliveTimeout
	}
	return l
}

// shelf holds unused connections of the pools that share its limits: those of an upstream, or one alone. The one used
// last is taken first; when there are too many, the one that has waited longest goes.
type shelf struct {
	owner   *Pools
	watched atomic.Bool // the sweeper knows it

	mu     sync.Mutex
	limits limits
	count  int
	ends   conn // newer is the one that has waited longest, older the one used last
}

func newShelf(owner *Pools, l limits) *shelf {
	s := &shelf{owner: owner, limits: l}
	s.ends.newer, s.ends.older = &s.ends, &s.ends
	return s
}

// put keeps a connection that was used last now, or tells that it is not kept.
func (s *shelf) put(c *conn, now int64) bool {
	s.mu.Lock()
	l := &s.limits
	if c.pool.gone.Load() || l.idle <= 0 || l.requests > 0 && c.requests >= l.requests || l.age > 0 && now-c.born > int64(l.age) {
		s.mu.Unlock()
		return false
	}
	var evicted *conn
	if s.count >= l.idle {
		evicted = s.ends.newer
		s.remove(evicted)
	}
	c.idleSince, c.swept = now, 0
	c.pool.idle = append(c.pool.idle, c)
	last := s.ends.older
	last.newer, c.older, c.newer, s.ends.older = c, last, &s.ends, c
	s.count++
	s.mu.Unlock()
	if evicted != nil {
		_ = evicted.Close()
	}
	s.owner.sweeper.wake(s)
	return true
}

// take gives the connection of a pool that was used last, nil when none is kept.
func (s *shelf) take(p *Pool, v via) *conn {
	s.mu.Lock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		if c := p.idle[i]; c.via.secure == v.secure && (!v.secure || c.via == v) { // all without TLS are alike
			s.remove(c)
			s.mu.Unlock()
			return c
		}
	}
	s.mu.Unlock()
	return nil
}

// remove takes a connection out. The mutex is held.
func (s *shelf) remove(c *conn) {
	c.older.newer, c.newer.older = c.newer, c.older
	c.older, c.newer = nil, nil
	s.count--
	idle := c.pool.idle
	i := len(idle) - 1
	for idle[i] != c {
		i--
	}
	copy(idle[i:], idle[i+1:])
	idle[len(idle)-1] = nil
	c.pool.idle = idle[:len(idle)-1]
}

// clear takes out all connections of a pool.
func (s *shelf) clear(p *Pool) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append([]*conn(nil), p.idle...)
	for _, c := range all {
		s.remove(c)
	}
	return all
}

// set changes the limits and closes what they leave no room for.
func (s *shelf) set(l limits) {
	var over []*conn
	s.mu.Lock()
	s.limits = l
	for s.count > max(l.idle, 0) {
		over = append(over, s.ends.newer)
		s.remove(s.ends.newer)
	}
	s.mu.Unlock()
	closeEach(over)
}

// expire takes out what has waited too long or is dead, and tells whether any is left.
func (s *shelf) expire(now int64) (dead []*conn, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := s.ends.newer; c != &s.ends; {
		next := c.newer
		waited := time.Duration(now - c.idleSince)
		if s.limits.timeout > 0 && waited >= s.limits.timeout || c.toLook(waited) && c.spoke() {
			s.remove(c)
			dead = append(dead, c)
		}
		c = next
	}
	return dead, s.count > 0
}

// toLook tells whether it is time to look at an unused connection: soon after it became that, and seldom from then on, since
// before it is used somebody looks at it anyway.
func (c *conn) toLook(waited time.Duration) bool {
	if waited < sweepEvery {
		return false
	}
	c.swept++
	return c.swept%lookEvery == 1
}

func closeEach(all []*conn) {
	for _, c := range all {
		_ = c.Close()
	}
}
