package http2

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// PeerSettings are the limits of attempts that bring none of their own. A zero field means its default.
type PeerSettings struct {
	Connect time.Duration // to have a connection (2 s)
	Read    time.Duration // without anything of the answer from the peer (60 s)
	Send    time.Duration // without the peer taking anything of the request (60 s)
	HeadMax int           // bytes of an answer's head (256 KiB, and never more)
	Drain   time.Duration // a peer that left may end its answers for so long (30 s)
}

const (
	mostHead = 256 << 10
	// ahead is how much of an answer is read ahead of a slow client.
	ahead = 256 << 10
)

func (s PeerSettings) withDefaults() PeerSettings {
	or(&s.Connect, 2*time.Second)
	or(&s.Read, time.Minute)
	or(&s.Send, time.Minute)
	or(&s.Drain, 30*time.Second)
	if s.HeadMax <= 0 {
		s.HeadMax = mostHead
	}
	return s
}

func or(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}

// Wire is how one location speaks to its peers. It is comparable. A zero field means what the PeerSettings say.
type Wire struct {
	Connect, Read, Send time.Duration
	HeadMax             int

	Scheme     string      // http or https; empty: the peer's own
	TLS        *tls.Config // for https; nil: that of the Pools. Other configurations share no connection
	ServerName string      // SNI, and the name to be verified; empty: the configuration's, else the host of the address
}

// Key is one process at one address. Whatever differs in it shares no connection.
type Key struct {
	Server      string // whose it is: service/id, or the server text
	Scheme      string // http or https
	Addr        string // ip:port
	Incarnation int64
	Upstream    string // whose limits and connections these are alone; empty: any upstream's
}

// Pools holds the connections to all peers that are spoken to over HTTP/2. A pool lives as long as somebody holds it; it
// opens a connection when one is needed, and another when the peer takes no more requests on those that are open.
type Pools struct {
	settings  PeerSettings
	tls       *tls.Config
	transport *http.Transport

	mu      sync.Mutex
	pools   map[Key]*Pool
	keep    map[string]*kept      // of upstreams
	leavers map[*Pool]*time.Timer // pools that are gone and still have open connections
	closed  bool
}

// NewPools makes an empty set. The TLS configuration is for peers of scheme https; nil verifies them by the host's roots.
func NewPools(s PeerSettings, t *tls.Config) *Pools {
	if t == nil {
		t = &tls.Config{}
	}
	s = s.withDefaults()
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &Pools{
		settings: s, tls: t,
		pools: map[Key]*Pool{}, keep: map[string]*kept{}, leavers: map[*Pool]*time.Timer{},
		transport: &http.Transport{
			Protocols:              protocols,
			DialContext:            dialled,
			DialTLSContext:         dialled,
			DisableCompression:     true,
			MaxResponseHeaderBytes: mostHead,
			ExpectContinueTimeout:  time.Second,
			HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: ahead, WriteByteTimeout: s.Send},
		},
	}
}

// dialled is the connection that was opened before net/http asked for it.
func dialled(ctx context.Context, _, _ string) (net.Conn, error) {
	c, ok := ctx.Value(socketKey{}).(net.Conn)
	if !ok {
		return nil, errors.New("http2: no connection was opened")
	}
	return c, nil
}

type socketKey struct{}

// opener makes attempts that speak as its wire says.
type opener struct {
	pools *Pools
	wire  Wire
}

// Opener gives what makes attempts that speak as w says. A peer's Link has a method HTTP2 that gives its *Pool.
func (ps *Pools) Opener(w Wire) forward.Opener {
	or(&w.Connect, ps.settings.Connect)
	or(&w.Read, ps.settings.Read)
	or(&w.Send, ps.settings.Send)
	if w.HeadMax <= 0 {
		w.HeadMax = ps.settings.HeadMax
	}
	return &opener{pools: ps, wire: w}
}

// Linked is what a peer's Link must be.
type Linked interface{ HTTP2() *Pool }

// Open is forward.Opener's.
func (o *opener) Open(ctx context.Context, peer *balance.Peer, fresh bool) forward.Backend {
	return &attempt{opener: o, ctx: ctx, peer: peer, pool: peer.Link.(Linked).HTTP2(), fresh: fresh}
}

// kept is how long an upstream's connections are kept.
type kept = atomic.Pointer[topology.Keepalive]

// Keepalive says how long an upstream's connections are kept. It holds for those that are opened or become unused from
// now on. An upstream of which nothing was said has nginx's defaults.
func (ps *Pools) Keepalive(upstream string, k topology.Keepalive) {
	if k.Requests <= 0 {
		k.Requests = topology.DefaultKeepaliveRequests
	}
	or(&k.Time, topology.DefaultKeepaliveTime)
	or(&k.Timeout, topology.DefaultKeepaliveTimeout)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.kept(upstream).Store(&k)
}

// kept gives the limits of an upstream's connections. The mutex is held.
func (ps *Pools) kept(upstream string) *kept {
	k := ps.keep[upstream]
	if k == nil {
		k = &kept{}
		k.Store(&topology.Keepalive{
			Idle: topology.DefaultKeepalive, Requests: topology.DefaultKeepaliveRequests,
			Time: topology.DefaultKeepaliveTime, Timeout: topology.DefaultKeepaliveTimeout,
		})
		ps.keep[upstream] = k
	}
	return k
}

// Acquire gives the pool of a process, and holds it until Release.
func (ps *Pools) Acquire(key Key) *Pool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.pools[key]
	if p == nil {
		p = &Pool{owner: ps, key: key, kept: ps.kept(key.Upstream)}
		ps.pools[key] = p
	}
	p.holders++
	return p
}

// Release lets a pool go. With its last holder it is gone: no request begins any more, unused connections close at
// once, and what still runs has the drain time to end before it is cut.
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
	p.leave()
	if p.open() == 0 {
		return
	}
	ps.after(p, ps.settings.Drain, func() {
		p.farewell()
		ps.after(p, farewellTime, func() {
			p.closeAll()
			ps.mu.Lock()
			delete(ps.leavers, p)
			ps.mu.Unlock()
		})
	})
}

// farewellTime is how long a connection may take to tell its peer that its requests were reset.
const farewellTime = time.Second

// after has something done with a pool that is gone, unless all end before.
func (ps *Pools) after(p *Pool, d time.Duration, do func()) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if !ps.closed {
		ps.leavers[p] = time.AfterFunc(d, do)
	}
}

// Close ends every connection, at once.
func (ps *Pools) Close() {
	ps.mu.Lock()
	ps.closed = true
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
	for _, p := range all {
		p.leave()
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
