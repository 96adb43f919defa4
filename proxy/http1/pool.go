package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Pool is the connections to one process.
type Pool struct {
	owner   *Pools
	key     PoolKey
	holders int // guarded by owner.mu
	gone    atomic.Bool
	shelf   *shelf
	idle    []*conn // guarded by shelf.mu; the one used last at the end

	mu    sync.Mutex
	conns map[*conn]struct{} // all that are open
}

// HTTP1 makes a Pool a peer's Link by itself.
func (p *Pool) HTTP1() *Pool { return p }

var errGone = errors.New("the peer left the topology")

// dial opens a connection, and looks again afterwards whether the peer is still there: its address may belong to
// somebody else by then.
func (p *Pool) dial(ctx context.Context, v via, limit time.Duration) (*conn, error) {
	if p.gone.Load() {
		return nil, errGone
	}
	d := net.Dialer{Timeout: limit}
	raw, err := d.DialContext(ctx, "tcp", p.key.Addr)
	if err != nil {
		return nil, err
	}
	if p.owner.wrap != nil {
		raw = p.owner.wrap(raw)
	}
	c := newConn(raw, p, v)
	p.mu.Lock()
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	if v.secure {
		if err := c.handshake(ctx, limit); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	if p.gone.Load() {
		_ = c.Close()
		return nil, errGone
	}
	return c, nil
}

// handshake puts TLS over a connection that is not used by anybody yet.
func (c *conn) handshake(ctx context.Context, limit time.Duration) error {
	config := c.via.tls.Clone()
	config.NextProtos = nil // nothing but HTTP/1.1 is spoken here
	if c.via.name != "" {
		config.ServerName = c.via.name
	} else if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(c.pool.key.Addr)
	}
	secure := tls.Client(c.socket, config)
	_ = c.socket.SetDeadline(time.Now().Add(limit))
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	_ = c.socket.SetDeadline(time.Time{})
	c.mu.Lock()
	c.stream, c.direct = secure, false
	c.mu.Unlock()
	return nil
}

func (p *Pool) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *Pool) forget(c *conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

func (p *Pool) closeIdle() { closeEach(p.shelf.clear(p)) }

func (p *Pool) all() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		all = append(all, c)
	}
	return all
}

func (p *Pool) closeAll() { closeEach(p.all()) }

// closeMost closes all connections but those of tunnels that end in good order, who are asked to, and reports whether there
// are such.
func (p *Pool) closeMost() (left bool) {
	for _, c := range p.all() {
		if c.leave() {
			left = true
		} else {
			_ = c.Close()
		}
	}
	return left
}
