package nethttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// PoolKey is one process at one address. Whatever differs in it shares no connection.
type PoolKey struct {
	Server      string // whose it is: service/id, or the server text
	Scheme      string // http or https
	Addr        string // ip:port
	Incarnation int64
}

// Pools holds the connections to all peers. A pool lives as long as somebody holds it, and peers of several upstreams
// that are the same process share one.
type Pools struct {
	settings Settings
	tls      *tls.Config

	mu     sync.Mutex
	pools  map[PoolKey]*Pool
	leaver map[*Pool]*time.Timer // pools that are gone and still have open connections
}

// NewPools makes an empty set. The TLS configuration is for peers of scheme https; nil verifies them by the host's roots.
func NewPools(s Settings, t *tls.Config) *Pools {
	return &Pools{settings: s.withDefaults(), tls: t, pools: map[PoolKey]*Pool{}, leaver: map[*Pool]*time.Timer{}}
}

// Acquire gives the pool of a process, and holds it until Release.
func (ps *Pools) Acquire(key PoolKey) *Pool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.pools[key]
	if p == nil {
		p = &Pool{owner: ps, key: key, conns: map[*conn]struct{}{}}
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
	ps.leaver[p] = time.AfterFunc(ps.settings.Drain, func() {
		p.closeAll()
		ps.mu.Lock()
		delete(ps.leaver, p)
		ps.mu.Unlock()
	})
}

// Close ends every connection, at once.
func (ps *Pools) Close() {
	ps.mu.Lock()
	all := make([]*Pool, 0, len(ps.pools)+len(ps.leaver))
	for _, p := range ps.pools {
		all = append(all, p)
	}
	for p, t := range ps.leaver {
		t.Stop()
		all = append(all, p)
	}
	clear(ps.pools)
	clear(ps.leaver)
	ps.mu.Unlock()
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
	for p := range ps.leaver {
		n += p.open()
	}
	return n
}

// Pool is the connections to one process.
type Pool struct {
	owner     *Pools
	key       PoolKey
	holders   int // guarded by owner.mu
	gone      atomic.Bool
	transport atomic.Pointer[http.Transport] // made at the first request: most peers of a large topology see none

	mu    sync.Mutex
	conns map[*conn]struct{}
}

var errGone = errors.New("the peer left the topology")

func (p *Pool) roundTripper() *http.Transport {
	if t := p.transport.Load(); t != nil {
		return t
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.transport.Load(); t != nil {
		return t
	}
	s := p.owner.settings
	only1 := new(http.Protocols)
	only1.SetHTTP1(true)
	t := &http.Transport{
		DialContext:            p.dial,
		TLSClientConfig:        p.owner.tls.Clone(),
		TLSHandshakeTimeout:    s.Connect,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    s.PeerIdleMax,
		IdleConnTimeout:        s.PeerIdle,
		ResponseHeaderTimeout:  s.Read,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: s.PeerHeader,
		Protocols:              only1,
	}
	p.transport.Store(t)
	return t
}

// dial opens a connection, and looks again afterwards whether the peer is still there: its address may belong to
// somebody else by then.
func (p *Pool) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	if p.gone.Load() {
		return nil, errGone
	}
	d := net.Dialer{Timeout: p.owner.settings.Connect}
	raw, err := d.DialContext(ctx, network, p.key.Addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, pool: p, send: p.owner.settings.Send}
	p.mu.Lock()
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	if p.gone.Load() {
		_ = c.Close()
		return nil, errGone
	}
	return c, nil
}

func (p *Pool) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *Pool) closeIdle() {
	if t := p.transport.Load(); t != nil {
		t.CloseIdleConnections()
	}
}

func (p *Pool) closeAll() {
	p.mu.Lock()
	all := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}
