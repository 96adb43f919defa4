package http1

import (
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/forward"
)

// PoolKey is one process at one address. Whatever differs in it shares no connection.
type PoolKey struct {
	Server      string // whose it is: service/id, or the server text
	Scheme      string // http or https
	Addr        string // ip:port
	Incarnation int64
	Upstream    string // whose limits and connections these are alone; empty: any upstream's, with the limits of the Settings
}

// Pools holds the connections to all peers. A pool lives as long as somebody holds it, and peers of several upstreams
// that are the same process share one unless their key names the upstream.
//
// It is the forward.Opener of attempts that have no Wire of their own.
type Pools struct {
	opener
	settings Settings
	sweeper  sweeper

	// Tests stand between us and the socket with wrap, and between the look at a kept connection and the write with crossing.
	wrap     func(net.Conn) net.Conn
	crossing func()

	mu      sync.Mutex
	pools   map[PoolKey]*Pool
	shelves map[string]*shelf     // of upstreams
	leavers map[*Pool]*time.Timer // pools that are gone and still have open connections
	closed  bool
}

// NewPools makes an empty set. The TLS configuration is for peers of scheme https; nil verifies them by the host's roots.
func NewPools(s Settings, t *tls.Config) *Pools {
	if t == nil {
		t = &tls.Config{}
	}
	ps := &Pools{settings: s.withDefaults(), pools: map[PoolKey]*Pool{}, shelves: map[string]*shelf{}, leavers: map[*Pool]*time.Timer{}}
	ps.opener = opener{wire: Wire{}.withDefaults(ps.settings), tls: t}
	return ps
}

// opener makes attempts that speak as its wire says.
type opener struct {
	wire Wire
	tls  *tls.Config
}

// Linked is what a peer's Link must be: it gives the pool of its connections.
type Linked interface{ HTTP1() *Pool }

// Opener gives what makes attempts that speak as w says. Connections are shared with all that speak alike.
func (ps *Pools) Opener(w Wire) forward.Opener {
	return &opener{wire: w.withDefaults(ps.settings), tls: ps.tls}
}

// Keepalive says which connections an upstream keeps. It holds for those that are open too. An upstream of which nothing
// was said has nginx's defaults.
func (ps *Pools) Keepalive(upstream string, k topology.Keepalive) {
	ps.mu.Lock()
	s := ps.shelf(upstream)
	ps.mu.Unlock()
	s.set(limitsOf(k))
}

// shelf is an upstream's. The mutex is held.
func (ps *Pools) shelf(upstream string) *shelf {
	s := ps.shelves[upstream]
	if s == nil {
		s = newShelf(ps, limitsOf(topology.UnsetKeepalive))
		ps.shelves[upstream] = s
	}
	return s
}

// Acquire gives the pool of a process, and holds it until Release.
func (ps *Pools) Acquire(key PoolKey) *Pool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.pools[key]
	if p == nil {
		p = &Pool{owner: ps, key: key, conns: map[*conn]struct{}{}}
		if key.Upstream != "" {
			p.shelf = ps.shelf(key.Upstream)
		} else {
			p.shelf = newShelf(ps, limits{idle: ps.settings.IdleMax, timeout: ps.settings.Idle})
		}
		ps.pools[key] = p
	}
	p.holders++
	return p
}

// Release lets a pool go. With its last holder it is gone: no connection is opened or taken any more, idle ones close
// at once, and what still runs has the drain time to end before it is cut.
func (ps *Pools) Release(p *Pool) {
	ps.mu.Lock()
	p.holders--
	last := p.holders == 0
	if last {
		delete(ps.pools, p.key)
	}
	ps.mu.Unlock()
	if !last {
		return
	}
	p.gone.Store(true)
	p.closeIdle()
	if p.open() == 0 {
		return
	}
	ps.after(p, ps.settings.Drain, func() {
		if p.closeMost() {
			ps.after(p, farewellTime, func() { ps.forget(p) })
		} else {
			ps.forget(p)
		}
	})
}

// farewellTime is how long a tunnel has that ends in good order.
const farewellTime = 2 * time.Second

// after does the next thing with a pool that is gone; with none left, when all is closed.
func (ps *Pools) after(p *Pool, wait time.Duration, do func()) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.closed {
		do = func() { ps.forget(p) }
		wait = 0
	}
	ps.leavers[p] = time.AfterFunc(wait, do)
}

// forget cuts what a pool that is gone has left.
func (ps *Pools) forget(p *Pool) {
	p.closeAll()
	ps.mu.Lock()
	delete(ps.leavers, p)
	ps.mu.Unlock()
}

// Farewell asks all tunnels to end that can do so in the way of their protocol, and reports whether there are any. It
// does not wait: they take a second at most.
func (ps *Pools) Farewell() (some bool) {
	ps.mu.Lock()
	all := ps.everyPool()
	ps.mu.Unlock()
	for _, p := range all {
		for _, c := range p.all() {
			some = c.leave() || some
		}
	}
	return some
}

// everyPool is those in use and those that are gone with connections left. The mutex is held.
func (ps *Pools) everyPool() []*Pool {
	return slices.AppendSeq(slices.Collect(maps.Values(ps.pools)), maps.Keys(ps.leavers))
}

// Close ends every connection, at once.
func (ps *Pools) Close() {
	ps.mu.Lock()
	all := ps.everyPool()
	ps.closed = true
	for _, t := range ps.leavers {
		t.Stop()
	}
	clear(ps.pools)
	clear(ps.leavers)
	ps.mu.Unlock()
	ps.sweeper.close()
	for _, p := range all {
		p.gone.Store(true)
		p.closeIdle()
		p.closeAll()
	}
}

// Busy is the number of connections that are still open to peers that left.
func (ps *Pools) Busy() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	n := 0
	for p := range ps.leavers {
		n += p.open()
	}
	return n
}
