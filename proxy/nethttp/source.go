package nethttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

var (
	errNotHeld = errors.New("the body is not held any more")
	errClosed  = errors.New("the attempt is over")
)

// replay is a request's body. Its first bytes are held as the client sends them, so that another attempt can send them
// again; beyond the limit they are let go and the body can be sent once only.
//
// Reads from the client are made by a goroutine of their own: an attempt that is over stops waiting for a slow client
// at once, and what arrives after all is there for the next.
type replay struct {
	r     *http.Request
	rc    *http.ResponseController
	idle  time.Duration // for the client to send something
	limit int

	mu    sync.Mutex
	held  []byte        // what was read and can still be asked for
	at    int           // of the next byte in held
	over  bool          // bytes before held are lost
	end   error         // of the client's side, after held
	ready chan struct{} // closed when the read that is going on ends; nil: none is
}

// Read is forward.Source's.
func (s *replay) Read(p []byte) (int, error) { return s.read(p, nil) }

// read waits for bytes until stop is closed.
func (s *replay) read(p []byte, stop <-chan struct{}) (int, error) {
	for {
		n, wait, err := s.next(p, stop)
		if wait == nil {
			return n, err
		}
		select {
		case <-wait:
		case <-stop:
			return 0, errClosed
		}
	}
}

// next gives what is at hand, or what to wait for. A reader that was stopped gets nothing, so that it takes nothing
// away from the one that follows a Rewind.
func (s *replay) next(p []byte, stop <-chan struct{}) (n int, wait chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-stop:
		return 0, nil, errClosed
	default:
	}
	if s.at < len(s.held) {
		n = copy(p, s.held[s.at:])
		s.at += n
		if s.at == len(s.held) {
			err = s.end
		}
		return n, nil, err
	}
	if s.end != nil {
		return 0, nil, s.end
	}
	if s.ready == nil {
		s.ready = make(chan struct{})
		go s.fill(s.ready)
	}
	return 0, s.ready, nil
}

var chunks = sync.Pool{New: func() any { return new([16 << 10]byte) }}

func (s *replay) fill(done chan struct{}) {
	chunk := chunks.Get().(*[16 << 10]byte)
	defer chunks.Put(chunk)
	_ = s.rc.SetReadDeadline(time.Now().Add(s.idle))
	n, err := readBody(s.r.Body, chunk[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.held)+n > s.limit {
		s.over = true
		s.held = append(s.held[:0], s.held[s.at:]...)
		s.at = 0
	}
	s.held = append(s.held, chunk[:n]...)
	s.end = err
	s.ready = nil
	close(done)
}

// readBody turns a panic of net/http, which it has for reads that it believes impossible, into an error: nothing else
// could catch it here, and one request must not end the process.
func readBody(body io.Reader, p []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, fmt.Errorf("read the request's body: %v", v)
		}
	}()
	return body.Read(p)
}

// whole tells whether the body was read to its proper end.
func (s *replay) whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Is(s.end, io.EOF)
}

// Trailer is what the client sent after the body.
func (s *replay) Trailer() []forward.Field { return fieldsOf(s.r.Trailer) }

// Rewind starts at the first byte again, if all that was read is held.
func (s *replay) Rewind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errNotHeld
	}
	s.at = 0
	return nil
}

// Rewindable is forward.Source's.
func (s *replay) Rewindable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over
}

// finish ends a read from the client that nobody waits for any more. The client's connection can't be used for another
// request then.
func (s *replay) finish() {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	if ready != nil {
		_ = s.rc.SetReadDeadline(time.Now())
		<-ready
	}
}

// gate is what one attempt sees of the body. net/http may read on after it has given an attempt up, and waits for that
// read before it tells the failure; behind a closed gate there is nothing.
type gate struct {
	src     forward.Source
	trailer http.Header // of the outgoing request, filled at the end of the body

	once sync.Once
	stop chan struct{}
	mu   sync.Mutex
	err  error // of the source
}

func newGate(src forward.Source, trailer http.Header) *gate {
	return &gate{src: src, trailer: trailer, stop: make(chan struct{})}
}

func (g *gate) Read(p []byte) (n int, err error) {
	if s, ok := g.src.(*replay); ok {
		n, err = s.read(p, g.stop)
	} else {
		n, err = g.src.Read(p)
	}
	switch {
	case err == nil || errors.Is(err, errClosed):
	case errors.Is(err, io.EOF):
		g.fillTrailer()
	default:
		g.mu.Lock()
		g.err = err
		g.mu.Unlock()
	}
	return n, err
}

func (g *gate) fillTrailer() {
	for _, f := range g.src.Trailer() {
		name := http.CanonicalHeaderKey(string(f.Name))
		if _, announced := g.trailer[name]; announced {
			g.trailer[name] = append(g.trailer[name], string(f.Value))
		}
	}
}

// Close is net/http's, the attempt's, and the connection's when it breaks.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.stop) })
	return nil
}

// failed is the error that the client's side gave, if any.
func (g *gate) failed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}
