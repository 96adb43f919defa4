package http2

import (
	"io"
	"net/http"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// Inform is forward.Client's.
func (s *stream) Inform(status int, fields []forward.Field) error {
	x := s.x
	block := appendFields(appendStatus(nil, status), fields, nil)
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.gone != nil {
		return s.gone
	}
	x.putHead(s.id, block, false)
	x.signal()
	return x.waitRoom()
}

// Cork is forward.Corker's.
func (s *stream) Cork() { s.corked = true }

// Head is forward.Client's. An answer without a head is one with 200; there is no other in HTTP/2. The head of an answer of
// unknown length is sent at once; others go with what follows.
func (s *stream) Head(status int, fields []forward.Field, length int64) error {
	switch status {
	case http.StatusSwitchingProtocols:
		return nil // Tunnel says that there is none
	case forward.Headless:
		status, fields = http.StatusOK, nil
	}
	var seen seen
	s.block = appendFields(appendStatus(s.block[:0], status), fields, &seen)
	if !seen.date {
		s.block = appendField(s.block, nameDate, syntax.Date())
	}
	if !seen.length && length > 0 {
		s.block = appendNumber(s.block, nameLength, length)
	}
	wait := s.corked || length >= 0 || status == http.StatusNoContent || status == http.StatusNotModified
	s.pending, s.left, s.corked = true, length, false
	x := s.x
	if x.server.leaving.Load() || x.spent(s.request.Served) {
		x.mu.Lock()
		x.leave()
		x.mu.Unlock()
	}
	if wait {
		return nil
	}
	return s.emit(nil, false, nil, true)
}

// Write is forward.Client's. The last bytes of a known length go with the end.
func (s *stream) Write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if s.left >= 0 {
		s.left -= int64(len(b))
	}
	return s.emit(b, false, nil, s.left != 0)
}

// Finish is forward.Finisher's.
func (s *stream) Finish(last []byte, trailer []forward.Field) error {
	return s.emit(last, true, trailer, true)
}

// End is forward.Client's.
func (s *stream) End(trailer []forward.Field) error { return s.emit(nil, true, trailer, true) }

// Abort is forward.Client's: a stream that has no end when its handler returns is reset.
func (s *stream) Abort() {}

// Tunnel is forward.Client's: a stream of HTTP/2 does not become one.
func (s *stream) Tunnel() (io.ReadWriteCloser, error) { return nil, errNoTunnel }

// emit writes the head if it waits, a piece of the body, and the end.
func (s *stream) emit(b []byte, end bool, trailer []forward.Field, now bool) error {
	var after []byte
	if end && len(trailer) > 0 {
		after = appendFields([]byte{tableSize}, trailer, nil)
		if len(after) == 1 {
			after = nil
		}
	}
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.waitRoom(); err != nil {
		return err
	}
	if s.gone != nil {
		return s.gone
	}
	if s.pending {
		s.pending, s.asked = false, false // no 100 after the final head
		s.closed = end && len(b) == 0 && after == nil
		x.putHead(s.id, s.block, s.closed)
	}
	if err := s.pieces(b, end && after == nil); err != nil {
		return err
	}
	switch {
	case !end || s.closed:
	case after != nil:
		x.putHead(s.id, after, true)
		s.closed = true
	default:
		if s.batch != x.batch || s.flags == 0 { // else the last piece waits still, and can be the end
			x.writeData(s.id, nil, true)
		} else {
			x.out[s.flags] |= flagEnd
		}
		s.closed = true
	}
	if now {
		x.signal()
	}
	return nil
}

// pass wakes one of those who wait for the connection's window when there is some; it wakes the next when it needs no more. So
// windows that a client gives byte by byte wake no crowd. The mutex is held.
func (x *session) pass() {
	if x.window <= 0 || x.waiters == 0 {
		return
	}
	for _, s := range x.streams {
		if s.waits && s.window > 0 {
			x.awake(s)
			s.moved.Broadcast()
			return
		}
	}
}

// awake: the stream waits for no window any more. The mutex is held.
func (x *session) awake(s *stream) {
	if s.waits {
		s.waits = false
		x.waiters--
	}
}

// pieces writes a piece of the body as the client takes it. The mutex is held.
func (s *stream) pieces(b []byte, end bool) error {
	x := s.x
	defer x.pass()
	for len(b) > 0 {
		n := min(int64(len(b)), s.window, x.window, frameSize)
		if n <= 0 {
			x.signal()
			x.pass()
			s.waits = true
			x.waiters++
			s.writeBy.Store(x.server.now() + int64(x.info.Settings.ClientSend))
			s.moved.Wait()
			s.writeBy.Store(0)
			x.awake(s)
		} else {
			s.window -= n
			x.window -= n
			s.closed = end && int(n) == len(b)
			s.batch, s.flags = x.batch, len(x.out)+4
			x.writeData(s.id, b[:n], s.closed)
			b = b[n:]
		}
		if len(b) == 0 {
			break
		}
		if err := x.waitRoom(); err != nil {
			return err
		}
		if s.gone != nil {
			return s.gone
		}
	}
	return nil
}

// spent tells whether a request is the last that the connection carries.
func (x *session) spent(served int64) bool {
	s := &x.info.Settings
	return s.ClientIdle < 0 || s.ClientRequests > 0 && served >= int64(s.ClientRequests) ||
		s.ClientAge > 0 && x.server.now()-x.born > int64(s.ClientAge)
}
