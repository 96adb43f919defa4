package http1

import (
	"errors"
	"io"
	"net"
	"os"
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
	s := splicing{pipe: pipe, to: raw, sent: sent}
	defer func() { pipe.Put(s.in == 0) }()
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
}

// fill waits for bytes of the peer's.
func (s *splicing) fill(a *attempt, most int) error {
	a.arm(a.opener.wire.Read)
	for {
		n, err := a.conn.spliceTo(s.pipe, most)
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

// spliceTo waits for bytes and moves them into a pipe; it gives no error beside them.
func (c *conn) spliceTo(p *socket.Pipe, most int) (n int, err error) {
	failed := c.raw.Read(func(fd uintptr) bool {
		n, err = p.Fill(fd, most)
		return err != unix.EAGAIN
	})
	switch {
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
		var n int
		var err error
		failed := s.to.Write(func(fd uintptr) bool {
			n, err = s.pipe.Drain(fd, s.in)
			return err != unix.EAGAIN
		})
		if failed != nil {
			err = failed
		}
		s.in -= n
		s.moved += int64(n)
		if told := s.sent(int64(n), err); told != nil {
			return told
		}
		if err != nil {
			return err
		}
	}
	return nil
}
