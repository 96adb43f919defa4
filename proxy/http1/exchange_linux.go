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
// may be its answer, and what was told before is looked for first. A later read on the connection has to
// try before it waits.
type step struct {
	run func(fd uintptr) bool

	of    *attempt
	look  bool // for what came while the connection was not used
	cross func()

	wrote    int
	writeErr error
	read     int
	readErr  error
	spoke    bool // something had come; nothing was written
	waiting  bool // all is written
}

func (s *step) callback(fd uintptr) bool {
	if !s.waiting {
		if s.look && socket.News(fd) {
			s.spoke = true
			return true
		}
		if s.cross != nil {
			s.cross()
		}
		s.wrote, s.writeErr = write(fd, s.of.first)
		if s.waiting = s.writeErr == nil && s.wrote == len(s.of.first); s.waiting {
			s.of.written() // before the wait, and the memory to read into after it
		}
		return !s.waiting
	}
	s.of.room()
	n, err := socket.Read(fd, s.of.buf[s.of.w:])
	if err == unix.EAGAIN {
		return false
	}
	switch {
	case err != nil:
		s.readErr = os.NewSyscallError("read", err)
	case n == 0:
		s.readErr = io.EOF
	}
	s.read = max(n, 0)
	return true
}

// exchange writes what an attempt has to write next, and reads the first bytes of the answer when all of it could be written
// at once; then it is given back. Look is for a connection that was used before: errSpoke tells that it can't be used any
// more, and that nothing was written. The deadline for reading is the caller's to set.
func (c *conn) exchange(a *attempt, look bool) (wrote, n int, err error) {
	s := &c.step
	run := s.run
	*s = step{run: run, of: a, look: look, cross: c.pool.owner.crossing}
	if err := c.raw.Read(run); err != nil {
		s.readErr = err
	}
	wrote, n, err = s.wrote, s.read, s.readErr
	spoke, writeErr := s.spoke, s.writeErr
	*s = step{run: run}
	c.noteWrite(wrote, writeErr)
	c.noteRead(err)
	switch {
	case spoke, writeErr != nil && wrote == 0 && look:
		return 0, 0, errSpoke
	case writeErr != nil:
		return wrote, 0, &writeError{os.NewSyscallError("write", writeErr)}
	}
	return wrote, n, err
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
