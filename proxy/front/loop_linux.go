package front

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/upstrand/upstrand/proxy/socket"
)

// waitFirst: requests on a plain socket are waited for without a read that can only find nothing.
const waitFirst = true

// plain is for a connection that speaks HTTP on the socket itself, as long as there is no TLS.
func (c *conn) plain() {
	c.direct = true
	c.readable = c.onReadable
}

// loopDirect serves within one call of the socket's RawConn.Read as long as it can. Entering that call forgets readiness that
// was told before; so each entry reads first, and what is told from then on ends the wait. Requests that may have to read
// from the socket themselves are served between two such calls. It rests when it was woken and there is nothing to do.
func (c *conn) loopDirect() (rests bool) {
	for {
		if err := c.raw.Read(c.readable); err != nil {
			switch _, p := c.phase(); {
			case !timedOut(err) || !c.woken():
				return false
			case p == waiting && c.work == nil && c.served.Load() != c.rested:
				c.rested = c.served.Load()
				return true
			}
			continue
		}
		if c.verdict == outside {
			c.verdict = c.advance(false)
		}
		if !c.goesOn() {
			return false
		}
	}
}

// onReadable is the callback: false waits for what comes next.
func (c *conn) onReadable(fd uintptr) bool {
	c.fd = fd
	leave := c.turn()
	c.fd = noFD
	return leave
}

// turn reads what there is and serves it. After a read that did not fill the buffer there is nothing more, or the socket
// becomes readable anew.
func (c *conn) turn() (leave bool) {
	for {
		n, drained, err := c.pull()
		switch {
		case n > 0:
		case err == unix.EAGAIN:
			if w := c.work; w.w == w.r {
				c.give()
			}
			c.verdict = over
			return !c.mayWait()
		default:
			c.verdict = over
			return true
		}
		switch c.verdict = c.advance(true); c.verdict {
		case more, idle:
			if drained {
				return false
			}
		default:
			return true
		}
	}
}

// pull reads what there is, with EAGAIN when that is nothing. It reports whether that was all: the socket becomes readable
// anew when more comes.
func (c *conn) pull() (n int, drained bool, err error) {
	w := c.work
	if w == nil {
		w = c.take()
	}
	p := w.buf[w.w:]
	if c.direct {
		n, err = socket.Read(c.fd, p)
		drained = n < len(p)
	} else {
		n, drained, err = c.sealed.pull(p)
	}
	if n > 0 {
		w.w += n
	}
	return n, drained, err
}

// pull is conn's, of TLS.
func (s *sealed) pull(p []byte) (n int, drained bool, err error) {
	s.seen.done = 0
	n, err = s.c.nc.Read(p)
	switch {
	case n > 0: // and half of an alert behind it, perhaps: the next call tells
		return n, err == nil && n < len(p) && s.short && s.seen.single(), nil
	case err == errAgain:
		err = unix.EAGAIN
	}
	return n, false, err
}

// readNow reads what there is.
func (s *sealed) readNow(p []byte) (int, error) {
	n, err := socket.Read(s.c.fd, p)
	switch {
	case err == unix.EAGAIN:
		return 0, errAgain
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// writeNow writes as much as the client takes now. An error shows at the next write.
func (s *sealed) writeNow(b []byte) int {
	n, _ := socket.Write(s.c.fd, b)
	return n
}

// putNow writes what the socket takes at once, and gives what is left: nothing after an error.
func (c *conn) putNow(b []byte) []byte {
	n, err := socket.Write(c.fd, b)
	if err != nil && err != unix.EAGAIN {
		c.broken = os.NewSyscallError("write", err)
		return nil
	}
	return b[n:]
}

// onWritable writes what the socket takes. It is true when there is nothing left to write, or no use in it.
func (c *conn) onWritable(fd uintptr) bool {
	o := &c.out
	for {
		n, err := o.write(fd)
		switch {
		case err == unix.EAGAIN:
			return false
		case err != nil:
			c.broken = os.NewSyscallError("write", err)
			return true
		}
		if c.waits {
			c.pace()
		}
		if !o.left(n) {
			return true
		}
	}
}

// write makes one call of the system.
func (o *out) write(fd uintptr) (int, error) {
	a, b, d := o.pieces[0], o.pieces[1], o.pieces[2]
	switch {
	case len(a) == 0 && len(d) == 0:
		return socket.Write(fd, b)
	case len(b) == 0 && len(d) == 0:
		return socket.Write(fd, a)
	case len(a) == 0 && len(b) == 0:
		return socket.Write(fd, d)
	case len(d) == 0:
		return socket.WriteBoth(fd, a, b)
	case len(a) == 0:
		return socket.WriteBoth(fd, b, d)
	case racing: // by calls that the race detector knows of
		return socket.WriteBoth(fd, a, b)
	}
	for {
		n, err := unix.Writev(int(fd), o.pieces[:])
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// news tells whether the socket has something to read, be it the end.
func (c *conn) news() bool { return c.poll(unix.POLLIN | unix.POLLRDHUP) }

// gone tells whether the client ended its side, or all of the connection.
func (c *conn) gone() (half, all bool) {
	return c.poll(unix.POLLRDHUP), c.poll(0)
}

// poll tells whether one of the events, an error or the end of both sides is there.
func (c *conn) poll(events int16) (yes bool) {
	if c.raw == nil {
		return false
	}
	err := c.raw.Control(func(fd uintptr) { yes = socket.Poll(fd, events) })
	return yes && err == nil
}

// unsent is the bytes that the client's host has not acknowledged.
func (c *conn) unsent() (n int) {
	_ = c.raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return n
}

// shutDown ends both directions while others use the socket.
func shutDown(raw syscall.RawConn) {
	_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
}
