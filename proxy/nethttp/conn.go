package nethttp

import (
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// conn is a connection to a peer. It is known to its pool while it is open, and it can tell whether the peer's host
// took in anything of what was written since a mark.
type conn struct {
	net.Conn
	pool *Pool
	send time.Duration

	use   sync.RWMutex // held for reading while a read or write runs
	ended atomic.Bool  // the peer closed its side in order
	reset atomic.Bool

	mu     sync.Mutex
	body   *gate // of the request that is being sent
	closed bool
	marked bool
	mark   uint64 // bytes acknowledged at the mark
	known  bool   // final was read
	final  uint64 // bytes acknowledged when it was closed
}

func (c *conn) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.send))
	c.use.RLock()
	defer c.use.RUnlock()
	n, err := c.Conn.Write(b)
	c.note(err)
	return n, err
}

func (c *conn) Read(b []byte) (int, error) {
	c.use.RLock()
	defer c.use.RUnlock()
	n, err := c.Conn.Read(b)
	c.note(err)
	return n, err
}

// note remembers how the connection ended. EPIPE is what the kernel gives instead of ECONNRESET when the peer had closed
// its side before.
func (c *conn) note(err error) {
	switch {
	case err == nil:
	case errors.Is(err, syscall.ECONNRESET):
		c.reset.Store(true)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE):
		c.ended.Store(true)
	}
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

// unread reports whether it is proven that nothing written since the mark was taken in by the peer's host, and closes the
// connection. The proof is an orderly close (a FIN, which acknowledges all that came before it) that acknowledged
// nothing of it. A reset is none, nor is silence: an application may read, act and die before its host acknowledges
// anything, and what a reset acknowledges is not counted by the kernel.
func (c *conn) unread() bool {
	_ = c.Close()
	c.use.Lock() // reads and writes end with the connection: what they met is known now
	ended := c.ended.Load() && !c.reset.Load()
	c.use.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return ended && c.marked && c.known && c.final == c.mark
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
