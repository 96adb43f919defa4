package http1

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/upstrand/upstrand/proxy/socket"
)

// waitFirst: a request is written and its answer waited for without a read that can only find nothing.
const waitFirst = true

// step is one exchange inside a call of RawConn.Read. Entering that call forgets readiness that was told before, and the
// callback's false parks until it is told anew. So the request is written inside the call: what is told from then on
// may be its answer, and what was told before is looked for first, but for what justUsed says. A later read on the connection
// has to try before it waits.
type step struct {
	look    bool // for what came while the connection was not used
	spoke   bool // something had come; nothing was written
	waiting bool // all is written
	wrote   int
	err     error // of the write, or of the read when all is written
}

func (a *attempt) callback(fd uintptr) bool {
	if a.step.waiting {
		return a.readFirst(fd)
	}
	return a.writeFirst(fd)
}

// writeFirst gives the memory of the request back before the wait, and readFirst takes that for the answer after it.
func (a *attempt) writeFirst(fd uintptr) bool {
	s := &a.step
	if s.look && socket.News(fd) {
		s.spoke = true
		return true
	}
	if cross := a.pool.owner.crossing; cross != nil {
		cross()
	}
	n, err := write(fd, a.first)
	if a.conn.noteWrite(n, err); err != nil {
		s.err = err
		return true
	}
	if s.wrote = n; n > 0 {
		a.progress.Sent = true
		a.progress.Out += int64(n)
	}
	if n < len(a.first) {
		return true
	}
	s.waiting = true
	a.written()
	return a.progress.Out > int64(n) && a.readFirst(fd) // an answer to the pieces before may have been told already
}

func (a *attempt) readFirst(fd uintptr) bool {
	a.room()
	to := a.buf[a.w:]
	n, err := socket.Read(fd, to)
	switch {
	case n > 0:
		a.w += n
		a.progress.In += int64(n)
		a.dry = n < len(to)
	case err == unix.EAGAIN:
		return false
	case err != nil:
		a.step.err = os.NewSyscallError("read", err)
	default:
		a.step.err = io.EOF
	}
	return true
}

// turn writes what an attempt has to write next, and reads the first bytes of the answer when all of it could be written
// at once; then it is given back. Kept is for a connection that was used before: errSpoke tells that it can't be used any
// more, and that nothing was written. With look that is looked for. The deadline for reading is the caller's to set.
func (a *attempt) turn(kept, look bool) error {
	c, s := a.conn, &a.step
	c.blind = kept && !look
	*s = step{look: look}
	err := c.raw.Read(a.run)
	switch {
	case s.spoke:
		return errSpoke
	case err != nil:
	case s.err == nil:
		return nil
	case s.waiting:
		err = s.err
	case kept:
		return errSpoke
	default:
		return &writeError{os.NewSyscallError("write", s.err)}
	}
	c.noteRead(err)
	return err
}

// pushing is a write inside a call of RawConn.Write.
type pushing struct {
	run func(fd uintptr) bool
	out []byte
	n   int
	err error
}

func (p *pushing) callback(fd uintptr) bool {
	p.n, p.err = write(fd, p.out)
	return true
}

// writeNow writes what the host takes at once.
func (c *conn) writeNow(b []byte) (int, error) {
	p := &c.pushing
	p.out = b
	err := c.raw.Write(p.run)
	if err == nil && p.err != nil {
		err = os.NewSyscallError("write", p.err)
	}
	n := p.n
	*p = pushing{run: p.run}
	c.noteWrite(n, err)
	return n, err
}

// write gives no error when nothing or not all can be taken now.
func write(fd uintptr, b []byte) (int, error) {
	n, err := socket.Write(fd, b)
	if err == unix.EAGAIN {
		return 0, nil
	}
	return n, err
}
