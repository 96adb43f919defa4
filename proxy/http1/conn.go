package http1

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// conn is a connection to a peer. It is known to its pool while it is open, and it can tell whether the peer's host took
// in anything of the request that it carries. But for Close it is used by one attempt at a time: one goroutine reads, and
// one writes.
type conn struct {
	pool     *Pool
	raw      syscall.RawConn // of the socket; nil: there is none
	deadline int64           // for reading, as it was set last: a moment, or 0
	requests int             // begun on it
	base     uint64          // bytes that the peer's host has acknowledged when it has all but the present request
	written  uint64          // since base
	based    bool            // base is known
	direct   bool            // stream is the socket and raw can be used for both directions
	dry      bool            // the last read of the answer before took all that was there
	blind    bool            // the present request was written without a look at what had come
	// How reads and writes ended. Those of the writer are looked at when it is done.
	readEnded, readReset, writeReset bool

	older, newer *conn // of the shelf; guarded by its mutex, as idleSince
	idleSince    int64 // a moment
	swept        int   // how often it was looked after since then; guarded likewise
	born         int64 // a moment
	via          via

	socket  net.Conn // below TLS
	stream  net.Conn // what requests are written to
	pushing pushing  // of the writer

	mu       sync.Mutex
	farewell func() // ends its tunnel in good order; nil: it has none, or knows of no such order
	due      bool   // the end has been asked for
	closed   bool
	final    uint64 // bytes acknowledged when it was closed
	over     bool   // and it was over for the kernel then
	known    bool   // final was read
}

func newConn(socket net.Conn, p *Pool, v via) *conn {
	c := &conn{pool: p, via: v, socket: socket, stream: socket, born: moment()}
	if sc, ok := socket.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			c.raw = raw
		}
	}
	_, c.direct = socket.(*net.TCPConn)
	c.direct = c.direct && c.raw != nil && waitFirst
	c.base, _, c.based = c.acknowledged()
	c.pushing.run = c.pushing.callback
	return c
}

// begin is called before a request is written. On a connection that was used before, what was written then has been
// acknowledged since it was answered, or it counts as nothing of this request all the same.
func (c *conn) begin() {
	c.requests++
	c.readEnded, c.readReset, c.writeReset, c.blind = false, false, false, false
	if c.via.secure { // more goes over the socket than is written here
		if c.requests > 1 {
			c.base, _, c.based = c.acknowledged()
		}
		return
	}
	c.base += c.written
	c.written = 0
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.stream.Read(b)
	c.noteRead(err)
	return n, err
}

// noteRead remembers how the peer's side ended.
func (c *conn) noteRead(err error) {
	switch {
	case err == nil:
	case errors.Is(err, syscall.ECONNRESET):
		c.readReset = true
	case errors.Is(err, io.EOF):
		c.readEnded = true
	}
}

// Write writes all of b. The peer must take some of it within limit, again and again; over TLS, where a write that was
// broken off can't be gone on with, all of it.
func (c *conn) Write(b []byte, limit time.Duration) (n int, err error) {
	if c.direct {
		if n, err = c.writeNow(b); err != nil || n == len(b) {
			return n, err
		}
		defer c.socket.SetWriteDeadline(time.Time{}) // one that has passed would fail the next writeNow
	}
	for {
		_ = c.socket.SetWriteDeadline(time.Now().Add(limit))
		took, err := c.stream.Write(b[n:])
		n += took
		c.noteWrite(took, err)
		if took <= 0 || n == len(b) || c.via.secure || !timedOut(err) {
			return n, err
		}
	}
}

// noteWrite remembers a reset. EPIPE is none: the kernel gives it when the peer had closed its side in order before.
func (c *conn) noteWrite(n int, err error) {
	c.written += uint64(max(n, 0))
	if err != nil && errors.Is(err, syscall.ECONNRESET) {
		c.writeReset = true
	}
}

// Close may be called by anybody, and more than once; only the first waits for the end of it.
func (c *conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.final, c.over, c.known = c.acknowledged()
	stream := c.stream
	c.mu.Unlock()
	c.pool.forget(c)
	return stream.Close() // TLS may take a while to say goodbye
}

// leave asks for the end of a tunnel. It reports whether there is one that ends in good order.
func (c *conn) leave() bool {
	c.mu.Lock()
	again := c.due
	c.due = true
	f := c.farewell
	c.mu.Unlock()
	if f != nil && !again {
		f()
	}
	return f != nil
}

// onFarewell has f called when the end is asked for; nil takes that back.
func (c *conn) onFarewell(f func()) {
	c.mu.Lock()
	c.farewell = f
	due := c.due
	c.mu.Unlock()
	if due && f != nil {
		f()
	}
}

// unread reports whether it is proven that nothing of the present request was taken in by the peer's host, and closes the
// connection. The proof is an orderly close (a FIN, which acknowledges all that came before it) that acknowledged
// nothing of it. A reset is none, nor is silence: an application may read, act and die before its host acknowledges
// anything, and what a reset acknowledges is not counted by the kernel. When nobody had looked before the request was written, the
// FIN may be older than it, and of a peer that closed its own side only and goes on reading: then the connection must be over, too,
// as it is when the peer's host refused the request since both sides were closed. That is no proof, as unseen says, but only a
// request that may be sent twice is written without a look. Nobody reads or writes any more.
func (c *conn) unread() bool {
	_ = c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readEnded && !c.readReset && !c.writeReset && c.based && c.known && c.final <= c.base && (c.over || !c.blind)
}

func (c *conn) acknowledged() (n uint64, over, ok bool) {
	if c.raw == nil {
		return 0, false, false
	}
	return bytesAcknowledged(c.raw)
}

// quiet reports whether nothing is left of what TLS took off the socket, where spoke would not see it. Nobody reads.
func (c *conn) quiet() bool {
	if !c.via.secure {
		return true
	}
	c.setReadDeadline(passed)
	var b [1]byte
	n, err := c.stream.Read(b[:])
	return n == 0 && timedOut(err)
}

// spoke reports whether the peer closed the unused connection, or said something on it.
func (c *conn) spoke() bool { return c.raw != nil && readable(c.raw) }
