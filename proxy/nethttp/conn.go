package nethttp

import (
	"net"
	"net/http/httptrace"
	"sync"
	"syscall"
	"time"
)

// conn is a connection to a peer. It is known to its pool while it is open, and it can tell whether the peer's host
// took in anything of what was written since a mark.
type conn struct {
	net.Conn
	pool *Pool
	send time.Duration

	mu     sync.Mutex
	body   *gate // of the request that is being sent
	closed bool
	marked bool
	mark   uint64 // bytes acknowledged at the mark
	known  bool   // both ends of the comparison were read
	final  uint64 // bytes acknowledged when it was closed
}

func (c *conn) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.send))
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		if c.marked {
			c.final, c.known = c.acknowledged()
		}
		c.pool.mu.Lock()
		delete(c.pool.conns, c)
		c.pool.mu.Unlock()
		if c.body != nil {
			_ = c.body.Close()
		}
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// carries says whose body is being sent, so that the wait for it ends when the connection does.
func (c *conn) carries(g *gate) {
	c.mu.Lock()
	c.body = g
	if c.closed && g != nil {
		_ = g.Close()
	}
	c.mu.Unlock()
}

// remember sets the mark. It is called before a request is written to a kept connection.
func (c *conn) remember() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.mark, c.marked = c.acknowledged()
	}
}

// unread reports whether it is proven that nothing written since the mark was taken in by the peer's host. That the
// connection ended, or was reset, is no proof: the peer may have read the request before.
func (c *conn) unread() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.marked {
		return false
	}
	if !c.closed {
		now, ok := c.acknowledged()
		return ok && now == c.mark
	}
	return c.known && c.final == c.mark
}

func (c *conn) acknowledged() (uint64, bool) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, false
	}
	return bytesAcknowledged(raw)
}

// ours finds the conn below what net/http took from its pool, through TLS.
func ours(info httptrace.GotConnInfo) *conn {
	switch c := info.Conn.(type) {
	case *conn:
		return c
	case interface{ NetConn() net.Conn }:
		inner, _ := c.NetConn().(*conn)
		return inner
	}
	return nil
}
