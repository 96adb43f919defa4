package http2

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// via is what must be alike for two attempts to share a connection.
type via struct {
	secure bool
	tls    *tls.Config
	name   string
}

func (w *Wire) via(scheme string, own *tls.Config) via {
	if w.Scheme != "" {
		scheme = w.Scheme
	}
	if scheme != "https" {
		return via{}
	}
	v := via{secure: true, tls: w.TLS, name: w.ServerName}
	if v.tls == nil {
		v.tls = own
	}
	return v
}

// conn is a connection to a peer, which carries several requests at once.
type conn struct {
	pool    *Pool
	via     via
	client  *http.ClientConn
	socket  *watched
	born    time.Time
	retired atomic.Bool // no new requests

	// The pool's mutex guards what follows.
	carried   int64                 // requests so far
	active    int                   // requests now
	users     map[*attempt]struct{} // those of them that were begun
	idleSince time.Time
	timer     *time.Timer // looks whether it was unused for too long; nil: none runs
	over      bool
}

var errNotSpoken = errors.New("the peer did not choose HTTP/2 in the TLS handshake")

// dial opens a connection, and looks again afterwards whether the peer is still there: its address may belong to
// somebody else by then.
func (p *Pool) dial(ctx context.Context, v via, limit time.Duration) (*conn, error) {
	if p.gone.Load() {
		return nil, errGone
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	opened, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.key.Addr)
	if err != nil {
		return nil, err
	}
	watch := &watched{Conn: opened}
	socket := net.Conn(watch)
	scheme := "http"
	if v.secure {
		scheme = "https"
		if socket, err = handshake(ctx, socket, v, p.key.Addr, limit); err != nil {
			return nil, err
		}
	}
	client, err := p.owner.transport.NewClientConn(context.WithValue(ctx, socketKey{}, socket), scheme, p.key.Addr)
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	c := &conn{pool: p, via: v, client: client, socket: watch, born: time.Now()}
	p.mu.Lock()
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	client.SetStateHook(c.changed)
	if p.gone.Load() {
		c.close()
		return nil, errGone
	}
	return c, nil
}

// handshake puts TLS over a connection; ALPN offers HTTP/2 alone. The TLS handshake has the time limit anew.
func handshake(ctx context.Context, socket net.Conn, v via, addr string, limit time.Duration) (net.Conn, error) {
	config := v.tls.Clone()
	config.NextProtos = []string{"h2"}
	if v.name != "" {
		config.ServerName = v.name
	} else if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secure := tls.Client(socket, config)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	err := secure.HandshakeContext(ctx)
	if err == nil && secure.ConnectionState().NegotiatedProtocol != "h2" {
		err = errNotSpoken
	}
	if err != nil {
		_ = socket.Close()
		return nil, err
	}
	return secure, nil
}

// usable tells whether a request may begin on it, as far as our own limits go. The pool's mutex is held.
func (c *conn) usable() bool {
	if c.over || c.retired.Load() || c.pool.gone.Load() {
		return false
	}
	k := c.pool.kept.Load()
	if c.carried < int64(k.Requests) && time.Since(c.born) <= k.Time {
		return true
	}
	c.retire()
	return false
}

// reserve takes a place for one more request, and tells whether there is one. The pool's mutex is held.
func (c *conn) reserve() bool {
	if c.client.Reserve() != nil {
		if c.active == 0 { // the peer wants no more on it
			c.retire()
		}
		return false
	}
	c.active++
	c.carried++
	return true
}

// retire lets no request begin on it any more. It is closed when the last one ends. The pool's mutex is held.
func (c *conn) retire() {
	c.retired.Store(true)
	if c.active == 0 {
		go c.close()
	}
}

// changed is net/http's news. It may come while the pool's mutex is held.
func (c *conn) changed(*http.ClientConn) {
	if c.client.Err() != nil && !c.retired.Swap(true) {
		go c.close()
	}
}

// begin makes a request known, so that it can be ended.
func (c *conn) begin(a *attempt) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if c.users == nil {
		c.users = map[*attempt]struct{}{}
	}
	c.users[a] = struct{}{}
}

// done ends a request.
func (c *conn) done(a *attempt) {
	c.pool.mu.Lock()
	delete(c.users, a)
	c.active--
	last, k := c.active == 0 && !c.over, c.pool.kept.Load()
	ends := last && (c.retired.Load() || c.pool.gone.Load() || k.Idle == 0)
	if last && !ends {
		if c.idleSince = time.Now(); c.timer == nil {
			c.timer = time.AfterFunc(k.Timeout, c.look)
		}
	}
	c.pool.mu.Unlock()
	if ends {
		c.close()
	}
}

// look closes it when it was unused for too long.
func (c *conn) look() {
	c.pool.mu.Lock()
	if c.timer = nil; c.over || c.active > 0 {
		c.pool.mu.Unlock()
		return
	}
	left := c.pool.kept.Load().Timeout - time.Since(c.idleSince)
	if left > 0 {
		c.timer = time.AfterFunc(left, c.look)
	} else {
		c.retired.Store(true)
	}
	c.pool.mu.Unlock()
	if left <= 0 {
		c.close()
	}
}

// close cuts it. It may be called more than once.
func (c *conn) close() {
	p := c.pool
	p.mu.Lock()
	over := c.over
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
	p.conns = slices.DeleteFunc(p.conns, func(o *conn) bool { return o == c })
	p.mu.Unlock()
	if !over {
		_ = c.client.Close()
	}
}
