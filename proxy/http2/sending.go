package http2

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/upstrand/upstrand/proxy/forward"
)

// stoppable is a forward.Source whose Read can be given up: then it takes no byte away from who reads it next.
type stoppable interface {
	ReadUntil(p []byte, stop <-chan struct{}) (int, error)
}

var (
	errShort = errors.New("the body ended before its length")
	errLong  = errors.New("the body goes on after its length")
)

// sending is a request's body as net/http takes it, in a goroutine of its own.
type sending struct {
	attempt *attempt
	source  forward.Source
	left    int64       // of the declared length; negative: unknown
	trailer http.Header // announced names; the values are filled in at the end
	taking  patience    // of the peer
	out     atomic.Int64

	once sync.Once
	stop chan struct{}

	mu      sync.Mutex     // held by whoever reads
	failure *forward.Error // of the client's side; guarded by mu
}

func newSending(a *attempt, r *forward.Request, trailer http.Header) *sending {
	s := &sending{attempt: a, source: r.Body, left: r.Length, trailer: trailer, stop: make(chan struct{})}
	s.taking.fire = func() { a.cancel(errTimeout) }
	return s
}

// Read gives net/http what the client sent. That it asks means that the peer took all before.
func (s *sending) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taking.end()
	select {
	case <-s.stop:
		return 0, errClosed
	default:
	}
	n, err := s.read(p)
	end := errors.Is(err, io.EOF)
	if err != nil && !end {
		return 0, err
	}
	s.out.Add(int64(n))
	if s.left >= 0 {
		if s.left -= int64(n); s.left < 0 {
			return 0, s.broken(errLong)
		}
	}
	if n > 0 {
		s.taking.begin(s.attempt.opener.wire.Send)
	}
	if end {
		return n, s.end()
	}
	return n, nil
}

// read takes from the client's side. Its errors, but for the end, are the client's.
func (s *sending) read(p []byte) (n int, err error) {
	if src, ok := s.source.(stoppable); ok {
		n, err = src.ReadUntil(p, s.stop)
	} else {
		n, err = s.source.Read(p)
	}
	select {
	case <-s.stop:
		return 0, errClosed
	default:
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, s.broken(err)
	}
	return n, err
}

// end is at the end of the client's side.
func (s *sending) end() error {
	if s.left > 0 {
		return s.broken(fmt.Errorf("%w, %d bytes too soon", errShort, s.left))
	}
	if len(s.trailer) == 0 {
		return io.EOF
	}
	for _, f := range s.source.Trailer() {
		if name := canonical(f.Name); hasName(s.trailer, name) {
			s.trailer[name] = append(s.trailer[name], string(f.Value))
		}
	}
	return io.EOF
}

func hasName(h http.Header, name string) bool {
	_, ok := h[name]
	return ok
}

func (s *sending) broken(err error) error {
	s.failure = &forward.Error{Class: forward.ClientBody, Err: err}
	return err
}

// Close is net/http's word that it reads no more.
func (s *sending) Close() error {
	s.once.Do(func() { close(s.stop) })
	return nil
}

// stopped ends it, and waits until nobody reads the client's side. It gives how that failed.
func (s *sending) stopped() *forward.Error {
	_ = s.Close()
	s.taking.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}
