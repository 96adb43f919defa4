package http2

import (
	"time"

	"golang.org/x/net/http2"
)

// Bounds of a stream that is late.
const (
	lateFor  = time.Second // and up to a sweep more
	lateRoom = 1 << 20     // bytes that its client is given back in all
	mostLate = 128         // of a connection; the oldest goes for the next one
)

// late is a stream that was answered whole before its body had come whole. RFC 9113, 8.1, allows to reset it at once, but
// clients that are about to send more, curl among them, take the reset for a failure and lose the answer. So what still comes
// is dropped for a while, in which a client sees the answer and stops, or ends its body. Only then the stream is reset. It costs
// no goroutine and none of a request's memory.
type late struct {
	id     uint32
	by     int64 // on the server's clock: it is reset then
	window int64 // bytes that the client may send now
	owed   int64 // bytes that were dropped, of which the client was not told
	room   int64 // bytes that it may be given back yet
	left   int64 // of the declared length; negative: unknown
}

// linger keeps a stream as late. The mutex is held.
func (x *session) linger(s *stream) {
	if len(x.late) >= mostLate {
		x.resetLate(0, http2.ErrCodeNo)
	}
	taken := s.unspent + s.owed
	l := late{
		id: s.id, by: x.server.now() + int64(min(lateFor, max(x.info.Settings.ClientBody, time.Millisecond))),
		window: streamWindow - taken, room: lateRoom, left: -1,
	}
	if s.length >= 0 {
		l.left = s.length - s.came
	}
	l.give(x, taken)
	x.late = append(x.late, l)
}

// give lets the client send so many bytes more, as far as there is room. The mutex is held.
func (l *late) give(x *session, n int64) {
	n = min(n, l.room)
	l.room -= n
	if l.owed += n; l.owed >= streamWindow/4 {
		x.writeWindow(l.id, l.owed)
		l.window += l.owed
		l.owed = 0
		x.signal()
	}
}

// lateAt finds a late stream; negative: it is none. The mutex is held.
func (x *session) lateAt(id uint32) int {
	for i := range x.late {
		if x.late[i].id == id {
			return i
		}
	}
	return -1
}

// endLate forgets a late stream that the client ended, or reset. The mutex is held.
func (x *session) endLate(i int) {
	x.late = append(x.late[:i], x.late[i+1:]...)
	x.settleIdle()
}

// resetLate ends a late stream. The mutex is held.
func (x *session) resetLate(i int, code http2.ErrCode) {
	x.writeReset(x.late[i].id, code)
	x.endLate(i)
	x.signal()
}

// drop takes a piece of a late stream's body. The connection's window has it back already. The mutex is held.
func (x *session) drop(i int, f *http2.DataFrame) error {
	l, n := &x.late[i], int64(len(f.Data()))
	if l.window -= int64(f.Length); l.window < 0 {
		return http2.StreamError{StreamID: l.id, Code: http2.ErrCodeFlowControl}
	}
	if l.left >= 0 {
		if l.left -= n; l.left < 0 || f.StreamEnded() && l.left > 0 {
			return http2.StreamError{StreamID: l.id, Code: http2.ErrCodeProtocol}
		}
	}
	if f.StreamEnded() {
		x.endLate(i)
		return nil
	}
	l.give(x, int64(f.Length))
	return nil
}

// sweepLate resets what was late for long enough. The mutex is held.
func (x *session) sweepLate(now int64) {
	for len(x.late) > 0 && x.late[0].by < now {
		x.resetLate(0, http2.ErrCodeNo)
	}
}
