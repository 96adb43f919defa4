package front

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// conn is a client's connection. One goroutine serves it from accept to close; the sweeper and whoever ends the server look
// at it from outside by its stamps, and end a wait by a deadline that is over.
type conn struct {
	// In one line of memory, what is looked at around each wait, the handler's too: requests of others pass between.
	srv     *Server
	work    *work        // nil: there is nothing to do
	fd      uintptr      // within a callback of raw.Read; else noFD
	stamp   atomic.Int64 // when the phase began that it is in
	served  atomic.Int64 // requests
	broken  error        // what a write ended with: nothing is written afterwards
	spliced atomic.Bool  // somebody else writes to the socket
	direct  bool         // nc is the socket, and reads wait first
	begun   bool         // something of a head has come
	mayBe2  bool         // its first bytes may be those of HTTP/2
	verdict verdict

	// In two more, what a request takes of it.
	life forward.Presence // the context of its requests; the sweeper looks for the client's end
	born int64            // in milliseconds of the server's clock
	info ConnInfo

	sealed   *sealed         // below TLS; nil: there is none
	base     net.Conn        // as it was accepted
	nc       net.Conn        // what HTTP is spoken on: base, or TLS over it. Its own goroutine's
	socket   *net.TCPConn    // base as a socket; nil: it is none
	raw      syscall.RawConn // of socket
	readable func(uintptr) bool
	out      out
	change   []forward.Field // of the answer that makes it a tunnel
	linger   bool            // the client may still be sending when this ends: read it
	reset    bool            // an end in order would make a cut answer look whole
	polite   bool            // a tunnel is over: say goodbye in TLS's way
	waits    bool            // for the client, in the way of putSlowly
	first    [1]byte
	waking   atomic.Bool // somebody is about to end the wait that it is in

	sending    atomic.Int64 // since when the client took no byte that is being written; 0: nothing is
	place      int          // in the server's list; guarded by its mutex
	rested     int64        // requests that were served when it moved to a fresh goroutine last; its own goroutine's
	looked     int64        // the stamp at which the sweeper looked for the client's end; its own
	measured   int64        // the moment of sending for which it knows what was unsent; its own, as the next
	unsentThen int          // in bytes
	halved     int64        // since when it knows that the client ended its side; 0: it did not; its own
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{srv: s, base: nc, nc: nc, fd: noFD, born: s.now.Load()}
	c.stamp.Store(stamped(c.born, waiting))
	c.mayBe2 = s.settings.HTTP2 && !s.settings.TLS && s.options.HTTP2 != nil
	c.info = ConnInfo{Remote: addrOf(nc.RemoteAddr()), Local: addrOf(nc.LocalAddr()), Number: numbers.Add(1), Settings: s.settings}
	if tcp, ok := nc.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			c.socket, c.raw = tcp, raw
			c.out.writable = c.onWritable
			c.plain()
		}
	}
	return c
}

const noFD = ^uintptr(0)

// numbers are given to the connections of all servers of the process.
var numbers atomic.Uint64

func addrOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// serve takes the connection from accept to close.
func (c *conn) serve() { c.run(c.start) }

// run serves the connection until it ends. A goroutine that has served requests leaves one that is unused to another, which
// waits on a small stack.
func (c *conn) run(serve func() (rests bool)) {
	rests := false
	defer func() {
		if !rests {
			defer c.srv.leave(c)
			c.close()
		}
	}()
	defer c.catch()
	if rests = serve(); rests {
		go c.run(c.loopDirect) // from here on it belongs to that one
	}
}

// start serves from the first byte on.
func (c *conn) start() (rests bool) {
	if !c.begin() {
		return false
	}
	if c.work != nil { // what came behind a PROXY protocol header
		if c.verdict = c.advance(false); !c.goesOn() {
			return false
		}
	}
	if c.waitsFirst() {
		return c.loopDirect()
	}
	c.loop()
	return false
}

// catch keeps a bug that shows on one connection, also in what is called while it begins, from ending the process.
func (c *conn) catch() {
	if v := recover(); v != nil {
		c.srv.options.Log.Error().Any("panic", v).Bytes("stack", debug.Stack()).Msg("serving a client's connection panicked")
		c.linger, c.verdict, c.fd = false, over, noFD
	}
}

// loop serves by ordinary reads. Memory is taken after the first byte.
func (c *conn) loop() {
	for c.more() {
		if c.verdict = c.advance(false); !c.goesOn() {
			return
		}
	}
}

// more reads what comes next.
func (c *conn) more() bool {
	w := c.work
	if w == nil {
		if n, _ := c.read(c.first[:], nil); n == 0 || !c.startHead() {
			return false
		}
		w = c.take()
		w.buf[0], w.w = c.first[0], 1
		return true
	}
	n, _ := c.read(w.buf[w.w:], nil)
	w.w += n
	return n > 0
}

// goesOn reports whether the connection is to be read from again.
func (c *conn) goesOn() bool {
	switch c.verdict {
	case more, idle:
		return true
	case preface:
		c.handOver()
	}
	return false
}

// read waits for bytes. A deadline that is over ends the wait only when the connection's time is over, or stopped says so.
func (c *conn) read(p []byte, stopped *atomic.Bool) (int, error) {
	for {
		n, err := c.nc.Read(p)
		switch {
		case n == 0 && err == nil: // io.Reader: nothing happened
			continue
		case n > 0 || !timedOut(err):
			return n, err
		}
		if !c.woken() {
			return 0, errLate
		}
		if stopped != nil && stopped.Load() {
			return 0, errStopped
		}
	}
}

// woken is called when a deadline was over. It reports whether the connection goes on.
func (c *conn) woken() bool {
	_ = c.base.SetReadDeadline(time.Time{})
	return c.alive() && (c.waitsFirst() || c.mayWait() || c.news())
}

// waitsFirst tells whether the connection is read from within callbacks of its socket.
func (c *conn) waitsFirst() bool { return waitFirst && c.raw != nil && (c.direct || c.sealed != nil) }

// mayWait tells whether the connection may go on being unused. One that was just made is given a while for its request when
// the server ends.
func (c *conn) mayWait() bool {
	if !c.srv.closing.Load() {
		return true
	}
	if _, p := c.phase(); p != waiting || c.begun {
		return true
	}
	return c.served.Load() == 0 && c.srv.now.Load()-c.born < fresh.Milliseconds()
}

// fresh is how long a connection is given for its first request when the server ends.
const fresh = time.Second

// startHead notes that something of a head has come.
func (c *conn) startHead() bool {
	if c.begun {
		return true
	}
	c.begun = true
	return c.enter(reading)
}

// wake ends the wait that the connection was seen in, so that it looks around.
func (c *conn) wake(seen int64) {
	c.waking.Store(true)
	if c.stamp.Load() == seen {
		_ = c.base.SetReadDeadline(longAgo)
	}
	c.waking.Store(false)
}

// calm takes back what a wake may have left behind, for those who know nothing of wakes. A phase was entered before that
// nobody wakes.
func (c *conn) calm() bool {
	for c.waking.Load() {
		runtime.Gosched()
	}
	_ = c.base.SetReadDeadline(time.Time{})
	return c.alive()
}

// expire ends the connection's time, unless it has gone on from the stamp that was seen. In a handshake it may be a write
// that waits.
func (c *conn) expire(seen int64) {
	if !c.stamp.CompareAndSwap(seen, dead) {
		return
	}
	switch phase(seen & (1<<phaseBits - 1)) {
	case shaking:
		_ = c.base.SetDeadline(longAgo)
		return
	case tunnelling: // whose client may have ended its side, so that only the backend is read
		c.life.End()
	}
	_ = c.base.SetReadDeadline(longAgo)
}

// cut ends the connection whatever it is doing.
func (c *conn) cut() {
	c.stamp.Store(dead)
	c.life.End()
	_ = c.base.SetDeadline(longAgo)
	if c.raw != nil {
		shutDown(c.raw)
	}
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return err != nil && errors.As(err, &t) && t.Timeout()
}

var longAgo = time.Unix(1, 0)
