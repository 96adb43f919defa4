package http1

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
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

// Open is forward.Opener's. The peer's Link is its *Pool.
func (o *opener) Open(ctx context.Context, peer *balance.Peer, fresh bool) forward.Backend {
	a := attempts.Get().(*attempt)
	a.failed = nil
	a.opener, a.ctx, a.peer, a.pool, a.fresh = o, ctx, peer, peer.Link.(*Pool), fresh
	return a
}

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
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.leavers[p] = time.AfterFunc(ps.settings.Drain, func() {
		p.closeAll()
		ps.mu.Lock()
		delete(ps.leavers, p)
		ps.mu.Unlock()
	})
}

// Close ends every connection, at once.
func (ps *Pools) Close() {
	ps.mu.Lock()
	all := make([]*Pool, 0, len(ps.pools)+len(ps.leavers))
	for _, p := range ps.pools {
		all = append(all, p)
	}
	for p, t := range ps.leavers {
		t.Stop()
		all = append(all, p)
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
