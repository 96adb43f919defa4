package http1

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/upstrand/upstrand/proxy/socket"
)

// Splice is forward.Spliced's: for a body of known length of which nothing is in memory any more.
func (b answerBody) Splice(to *net.TCPConn, leave int64, sent func(n int64, err error) error) (int64, error) {
	a := b.a
	if a.failed != nil || a.conn == nil || !a.conn.direct || a.ended || !a.final || a.framing != byLength || a.r < a.w || a.left <= leave {
		return 0, nil
	}
	raw, err := to.SyscallConn()
	if err != nil {
		return 0, nil
	}
	pipe, err := socket.TakePipe()
	if err != nil {
		return 0, nil // by memory, then
	}
	s := splicings.Get().(*splicing)
	s.pipe, s.to, s.sent = pipe, raw, sent
	defer s.end()
	for a.left > leave {
		err := s.fill(a, int(min(a.left-leave, socket.PipeSize)))
		if s.moved == 0 && errors.Is(err, errNoSplice) {
			return 0, nil // by memory, then
		}
		if err != nil {
			return s.moved, err
		}
		if err := s.drain(); err != nil {
			return s.moved, err
		}
	}
	return s.moved, nil
}

// splicing is one way from a socket through a pipe to another.
type splicing struct {
	pipe  *socket.Pipe
	to    syscall.RawConn
	sent  func(n int64, err error) error
	in    int   // bytes in the pipe
	moved int64 // and behind it

	most    int // of one call of the system
	n       int // what it gave
	err     error
	filling func(fd uintptr) bool // intoPipe and outOfPipe: made once, since each piece needs them
	drying  func(fd uintptr) bool
}

var splicings = sync.Pool{New: func() any {
	s := &splicing{}
	s.filling, s.drying = s.intoPipe, s.outOfPipe
	return s
}}

// end gives back what was taken.
func (s *splicing) end() {
	s.pipe.Put(s.in == 0)
	*s = splicing{filling: s.filling, drying: s.drying}
	splicings.Put(s)
}

func (s *splicing) intoPipe(fd uintptr) bool {
	s.n, s.err = s.pipe.Fill(fd, s.most)
	return s.err != unix.EAGAIN
}

func (s *splicing) outOfPipe(fd uintptr) bool {
	s.n, s.err = s.pipe.Drain(fd, s.in)
	return s.err != unix.EAGAIN
}

// fill waits for bytes of the peer's.
func (s *splicing) fill(a *attempt, most int) error {
	a.arm(a.opener.wire.Read)
	for {
		n, err := s.take(a.conn, most)
		a.progress.In += int64(n)
		a.dry = false
		if n > 0 {
			s.in = n
			a.left -= int64(n)
			return nil
		}
		switch {
		case cantSplice(err):
			return errNoSplice
		case !a.patient(err):
			return a.cutOff(err)
		}
	}
}

var errNoSplice = errors.New("the host does not splice from this socket")

// cantSplice tells whether splicing is not for this kind of socket, or not allowed, such as in a sandbox.
func cantSplice(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP)
}

// take waits for bytes and moves them into the pipe; it gives no error beside them.
func (s *splicing) take(c *conn, most int) (n int, err error) {
	s.most = most
	failed := c.raw.Read(s.filling)
	switch n, err = s.n, s.err; {
	case failed != nil:
		n, err = 0, failed
	case err != nil:
		err = os.NewSyscallError("splice", err)
	case n == 0:
		err = io.EOF
	}
	c.noteRead(err)
	return n, err
}

// drain writes what is in the pipe, and tells of each piece.
func (s *splicing) drain() error {
	for s.in > 0 {
		s.n, s.err = 0, nil
		err := s.to.Write(s.drying)
		if err == nil {
			err = s.err
		}
		s.in -= s.n
		s.moved += int64(s.n)
		if told := s.sent(int64(s.n), err); told != nil {
			return told
		}
		if err != nil {
			return err
		}
	}
	return nil
}
