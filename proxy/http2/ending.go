package http2

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// finish says why the connection ends, if there is something to say, and lets the client see it.
func (x *session) finish(err error) {
	var code http2.ConnectionError
	x.mu.Lock()
	switch {
	case errors.As(err, &code):
		x.writeGoAway(http2.ErrCode(code))
	case errors.Is(err, http2.ErrFrameTooLarge):
		x.writeGoAway(http2.ErrCodeFrameSize)
	case err != nil:
		x.fail(err)
		x.mu.Unlock()
		return
	}
	x.dropAll() // nobody reads frames any more: what is sent is what waits already
	x.signal()
	for x.flushing && x.broken == nil {
		x.room.Wait()
	}
	broken := x.broken
	x.fail(errGoneClient)
	x.mu.Unlock()
	if broken != nil {
		return
	}
	if half, ok := x.conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	_ = x.conn.SetReadDeadline(time.Now().Add(lingering))
	_, _ = io.CopyN(io.Discard, x.conn, lingerMost)
}

// fail: nothing more can be written. The mutex is held.
func (x *session) fail(err error) {
	if x.broken == nil {
		x.broken = err
	}
	x.out = x.out[:0]
	x.room.Broadcast()
	for _, s := range x.streams {
		s.moved.Broadcast()
	}
}

// touch begins or ends the time without requests. The mutex need not be held.
func (x *session) touch() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.settleIdle()
}

// settleIdle looks whether the connection has requests, and whether it is to end. The mutex is held.
func (x *session) settleIdle() {
	switch {
	case len(x.streams)+len(x.late) > 0:
		x.stamps.unused.Store(0)
	case x.leaving:
		x.hangUp()
	default:
		wait := x.info.Settings.ClientIdle
		if x.served == 0 {
			wait = max(wait, x.info.Settings.ClientHeader)
		}
		x.stamps.unused.Store(x.server.now() + max(int64(wait), 1))
	}
}

// hangUp ends the connection in good order: the reader is woken and does it. The mutex is held.
func (x *session) hangUp() {
	if x.stamps.closing.Swap(1) == 0 {
		_ = x.conn.SetReadDeadline(longAgo)
	}
}

// leave tells the client to go elsewhere. The mutex is held.
func (x *session) leave() {
	if !x.leaving {
		x.writeGoAway(http2.ErrCodeNo)
		x.signal()
	}
}

// rest lets memory go that a connection without requests does not need for now. The mutex is held.
func (x *session) rest() {
	if x.quiet++; len(x.streams) > 0 {
		x.quiet = 0
	}
	if x.quiet == 4 {
		x.idle.trim()
	}
}

// sweep ends what was due before now, on the server's clock.
func (x *session) sweep(now int64) {
	due := func(stamp *atomic.Int64) bool {
		by := stamp.Load()
		return by != 0 && by < now
	}
	if due(&x.stamps.writing) || due(&x.stamps.heading) {
		_ = x.conn.SetDeadline(longAgo)
		go func() { _ = x.conn.Close() }()
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rest()
	if due(&x.stamps.unused) && len(x.streams) == 0 {
		x.leave()
		x.hangUp()
	}
	x.sweepLate(now)
	for _, s := range x.streams {
		if due(&s.readBy) {
			s.stop(errSlowBody)
		}
		if due(&s.writeBy) {
			x.writeReset(s.id, http2.ErrCodeInternal)
			x.reset(s, errSlowClient)
			x.signal()
		}
	}
}

var longAgo = time.Unix(1, 0)
