package http2

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"

	"github.com/upstrand/upstrand/proxy/body"
	"github.com/upstrand/upstrand/proxy/forward"
)

// stream is one request of a session, and the waiting side of it. It is used again: nothing of it, its request among it,
// may be touched after the handler returned.
type stream struct {
	x       *session
	id      uint32
	life    *forward.Presence
	request forward.Request
	fields  []forward.Field // of request
	scratch any             // the handler's
	body    *body.Replay    // the request's; nil: none

	// The answer, which is the handler's goroutine's.
	block   []byte // a head that waits for what follows
	pending bool   // it does
	corked  bool
	left    int64 // of the declared length; negative: unknown

	// What follows is guarded by the session's mutex.
	window   int64     // bytes of a body that the client takes now
	waits    bool      // for this window or the connection's, and was not woken yet
	moved    sync.Cond // window, or the stream's end
	closed   bool      // END_STREAM was written
	batch    uint64    // of the last piece of the body
	flags    int       // where in out its flags are; 0: there was none
	gone     error     // it is over; what is still written goes nowhere
	buf      []byte    // of the body, from at on
	at       int
	length   int64 // declared; negative: unknown
	came     int64
	unspent  int64 // of streamWindow: bytes that came and are not given back yet
	owed     int64 // and are, but the client was not told
	asked    bool  // the client waits to be told that its body is wanted
	ended    bool  // END_STREAM came
	failure  error // of the body
	arrived  sync.Cond
	trailers []forward.Field

	readBy, writeBy atomic.Int64 // when what is waited for must have come on, on the server's clock; 0: nothing is
}

var streams = sync.Pool{New: func() any { return new(stream) }}

// Room is kept for so many fields, and such a body and head.
const (
	keptFields = 128
	keptBody   = 32 << 10
	keptHead   = 4 << 10
)

var (
	errSlowBody   = fmt.Errorf("the client sends nothing of the body: %w", os.ErrDeadlineExceeded)
	errSlowClient = errors.New("the client takes nothing of the answer")
	errInterrupt  = errors.New("nobody reads the body any more")
	errNoTunnel   = fmt.Errorf("%w: it came over HTTP/2", forward.ErrNoTunnel)
)

func newStream(x *session, id uint32) *stream {
	s := streams.Get().(*stream)
	s.x, s.id, s.window, s.life = x, id, x.initial, &forward.Presence{}
	s.moved.L, s.arrived.L = &x.mu, &x.mu
	return s
}

func (s *stream) release() {
	fields, trailers, buf, block := s.fields, s.trailers, s.buf, s.block
	if cap(fields) > keptFields {
		fields = nil
	}
	if cap(trailers) > keptFields {
		trailers = nil
	}
	if cap(buf) > keptBody {
		buf = nil
	}
	if cap(block) > keptHead {
		block = nil
	}
	clear(fields)
	clear(trailers)
	*s = stream{scratch: s.scratch, fields: fields[:0], trailers: trailers[:0], buf: buf[:0], block: block[:0]}
	streams.Put(s)
}

// handle has the request answered.
func (s *stream) handle() {
	x := s.x
	x.server.writing.Add(1)
	s.serve()
	if s.body != nil {
		s.body.Finish()
	}
	x.mu.Lock()
	x.running--
	switch {
	case s.gone != nil:
	case !s.closed:
		x.writeReset(s.id, http2.ErrCodeInternal)
		x.reset(s, errInterrupt)
	case !s.ended:
		x.linger(s)
		x.reset(s, errInterrupt)
	default:
		x.forget(s)
	}
	if s.closed {
		x.abuse = max(x.abuse-1, 0)
	}
	x.signal()
	x.mu.Unlock()
	x.server.writing.Add(-1)
	s.life.End()
	s.release()
}

func (s *stream) serve() {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			s.x.server.errors.Printf("http2: a request of %v: %v", s.request.Remote, v)
		}
	}()
	s.x.server.handler.Handle(s.life, &s.request, s)
}

// forget: the stream is over. The mutex is held.
func (x *session) forget(s *stream) {
	if x.streams[s.id] == s {
		delete(x.streams, s.id)
	}
	x.giveBack(int64(len(s.buf) - s.at))
	s.buf, s.at = s.buf[:0], 0
	x.settleIdle()
}

// reset: the stream is over before its time. The mutex is held.
func (x *session) reset(s *stream, why error) {
	if s.gone != nil {
		return
	}
	s.gone = why
	s.stop(why)
	x.forget(s)
	s.moved.Broadcast()
	s.life.End()
}

// stop ends reading of the body. The mutex is held.
func (s *stream) stop(why error) {
	if s.failure == nil {
		s.failure = why
	}
	s.arrived.Broadcast()
}

// take takes a piece of the body, which took size bytes of the windows. The session's mutex is held.
func (s *stream) take(b []byte, size int64, end bool) error {
	x := s.x
	x.giveBack(size - int64(len(b)))
	s.unspent += size
	s.credit(size - int64(len(b)))
	s.came += int64(len(b))
	var code http2.ErrCode
	switch {
	case s.unspent > streamWindow:
		code = http2.ErrCodeFlowControl
	case s.length >= 0 && (s.came > s.length || end && s.came < s.length):
		code = http2.ErrCodeProtocol
	}
	if code != 0 {
		x.giveBack(int64(len(b)))
		return http2.StreamError{StreamID: s.id, Code: code}
	}
	s.ended, s.asked = s.ended || end, false
	if s.failure != nil { // nobody wants it
		x.giveBack(int64(len(b)))
		s.credit(int64(len(b)))
	} else {
		if s.at > 0 && len(s.buf)+len(b) > cap(s.buf) {
			s.buf = s.buf[:copy(s.buf, s.buf[s.at:])]
			s.at = 0
		}
		s.buf = append(s.buf, b...)
	}
	s.arrived.Broadcast()
	return nil
}

// credit lets the client send so many bytes more of this body. The mutex is held.
func (s *stream) credit(n int64) {
	s.unspent -= n
	if s.owed += n; s.owed >= streamWindow/4 && !s.ended {
		s.x.writeWindow(s.id, s.owed)
		s.owed = 0
		s.x.signal()
	}
}

// Read is body.Stream's. It waits for the client as long as the settings say.
func (s *stream) Read(p []byte) (int, error) {
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	for s.at == len(s.buf) {
		switch {
		case s.failure != nil:
			return 0, s.failure
		case s.ended:
			return 0, io.EOF
		case s.asked:
			s.asked = false
			x.putHead(s.id, appendStatus(nil, http.StatusContinue), false)
			x.signal()
		}
		s.readBy.Store(x.server.now() + int64(x.info.Settings.ClientBody))
		s.arrived.Wait()
		s.readBy.Store(0)
	}
	n := copy(p, s.buf[s.at:])
	if s.at += n; s.at == len(s.buf) {
		if s.buf, s.at = s.buf[:0], 0; cap(s.buf) > 2*keptBody {
			s.buf = nil // a stream that lives on holds no more than the windows allow all of them
		}
	}
	x.giveBack(int64(n))
	s.credit(int64(n))
	if s.ended && s.at == len(s.buf) && s.failure == nil {
		return n, io.EOF
	}
	return n, nil
}

// Interrupt is body.Stream's.
func (s *stream) Interrupt() {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	s.stop(errInterrupt)
}

// Trailer is body.Stream's.
func (s *stream) Trailer() []forward.Field { return s.trailers }
