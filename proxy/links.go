package proxy

import (
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/http1"
	"github.com/upstrand/upstrand/proxy/http2"
)

// link is the connections to a peer: which of the two are used is said by whoever sends it a request.
type link struct {
	one *http1.Pool
	two *http2.Pool
}

// HTTP1 is http1.Linked's.
func (l *link) HTTP1() *http1.Pool { return l.one }

// HTTP2 is http2.Linked's.
func (l *link) HTTP2() *http2.Pool { return l.two }

// link holds the connections to a process.
func (p *Proxy) link(key http1.PoolKey) *link {
	return &link{one: p.pools.Acquire(key), two: p.peers2.Acquire(http2.Key(key))}
}

// unlink lets those of a peer go.
func (p *Proxy) unlink(peer *balance.Peer) {
	l := peer.Link.(*link)
	p.pools.Release(l.one)
	p.peers2.Release(l.two)
}

// peerSettings are the limits of attempts over HTTP/2: those of the others.
func peerSettings(s http1.Settings) http2.PeerSettings {
	return http2.PeerSettings{Connect: s.Connect, Read: s.Read, Send: s.Send, HeadMax: s.HeadMax, Drain: s.Drain}
}
