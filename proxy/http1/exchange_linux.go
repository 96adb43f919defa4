package http1

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// waitFirst: a request is written and its answer waited for without a read that can only find nothing.
const waitFirst = true

// step is one exchange inside a call of RawConn.Read. Entering that call forgets readiness that was told before, and the
// callback's false parks until it is told anew. So the request is written inside the call: what is told from then on
// may be its answer, and what was told before is looked for first. A later read on the connection has to
// try before it waits.
type step struct {
	run func(fd uintptr) bool

	out, in []byte
	look    bool // for what came while the connection was not used
	cross   func()

	wrote    int
	writeErr error
	read     int
	readErr  error
	spoke    bool // something had come; nothing was written
	waiting  bool // all is written
}

func (s *step) callback(fd uintptr) bool {
	if !s.waiting {
		if s.look && news(int(fd)) {
			s.spoke = true
			return true
		}
		if s.cross != nil {
			s.cross()
		}
		s.wrote, s.writeErr = write(int(fd), s.out)
		s.waiting = s.writeErr == nil && s.wrote == len(s.out)
		return !s.waiting
	}
	n, err := read(int(fd), s.in)
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

// exchange writes out, and reads the first bytes of the answer when all of it could be written at once. Look is for a
// connection that was used before: errSpoke tells that it can't be used any more, and that nothing was written. The
// deadline for reading is the caller's to set.
func (c *conn) exchange(out, in []byte, look bool) (wrote, n int, err error) {
	s := &c.step
	run := s.run
	*s = step{run: run, out: out, in: in, look: look, cross: c.pool.owner.crossing}
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

// news tells whether a read would give something, be it the end or an error. It takes nothing away.
func news(fd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}}
	for {
		n, err := unix.Poll(fds[:], 0)
		if err != unix.EINTR {
			return n != 0
		}
	}
}

// write gives no error when nothing or not all can be taken now.
func write(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Write(fd, b)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return 0, nil
		}
		return max(n, 0), err
	}
}

func read(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Read(fd, b)
		if err != unix.EINTR {
			return n, err
		}
	}
}
