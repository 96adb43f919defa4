package front

import (
	"errors"
	"io"
	"net"
	"sync/atomic"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

var (
	errCutOff            = errors.New("the client's connection ended within the body")
	errStopped           = errors.New("nobody reads the body any more")
	errLate    net.Error = late{} // so that who answers can tell it from what the client did wrong
)

// late is the error of a body whose client is silent for too long.
type late struct{}

func (late) Error() string { return "the client sent nothing in time" }

// Timeout is net.Error's.
func (late) Timeout() bool { return true }

// Temporary is net.Error's.
func (late) Temporary() bool { return false }

// stream is a body that is still coming when its request is handled. It is a body.Stream.
type stream struct {
	c       *conn
	early   []byte // what came with the head, out of its chunks
	left    int64  // by length, after early
	chunks  *syntax.Chunks
	extra   []byte // what came after the last chunk
	stopped atomic.Bool
}

// Read is io.Reader's. It asks the client for the body first if that waits to be asked.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.early) > 0 {
		n := copy(p, s.early)
		s.early = s.early[n:]
		return n, nil
	}
	s.c.work.client.proceed()
	if s.chunks != nil {
		return s.readChunks(p)
	}
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.wire(p[:min(int64(len(p)), s.left)])
	if s.left -= int64(n); err == nil && s.left == 0 {
		err = io.EOF
	}
	return n, err
}

func (s *stream) readChunks(p []byte) (int, error) {
	for {
		n, err := s.wire(p)
		if err != nil {
			return 0, err
		}
		wrote, took, err := s.chunks.Decode(p, p[:n])
		switch {
		case err != nil:
			return wrote, err
		case s.chunks.Done():
			s.extra = append(s.extra, p[took:n]...)
			return wrote, io.EOF
		case wrote > 0:
			return wrote, nil
		}
	}
}

// wire reads from the connection.
func (s *stream) wire(p []byte) (int, error) {
	if s.stopped.Load() {
		return 0, errStopped
	}
	if !s.c.enter(receiving) {
		return 0, errLate
	}
	n, err := s.c.read(p, &s.stopped)
	if !s.c.enter(handling) && err == nil && n == 0 {
		err = errLate
	}
	if errors.Is(err, io.EOF) {
		err = errCutOff
	}
	return n, err
}

// Interrupt is body.Stream's.
func (s *stream) Interrupt() {
	s.stopped.Store(true)
	_ = s.c.base.SetReadDeadline(longAgo)
}

// Trailer is body.Stream's.
func (s *stream) Trailer() []forward.Field {
	if s.chunks == nil {
		return nil
	}
	return forward.FieldsOf(s.chunks.Trailer())
}
