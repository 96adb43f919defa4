package http2

import (
	"time"

	"golang.org/x/net/http2"
)

// frame takes a frame. A StreamError ends one request, any other error the connection.
func (x *session) frame(f http2.Frame) error {
	size := int64(f.Header().Length) + headSize
	switch f := f.(type) {
	case *http2.HeadersFrame:
		x.useful += size
		return x.headers(f)
	case *http2.ContinuationFrame:
		return x.more(f)
	case *http2.DataFrame:
		if len(f.Data()) > 0 || f.StreamEnded() {
			x.useful += size
		} else {
			x.fruitless += size
		}
		if err := x.data(f); err != nil {
			return err
		}
	case *http2.SettingsFrame:
		x.fruitless += size
		if err := x.settings(f); err != nil {
			return err
		}
	case *http2.PingFrame:
		x.fruitless += size
		if f.IsAck() {
			break
		}
		x.mu.Lock()
		x.writeAck(http2.FramePing, f.Data[:])
		x.signal()
		err := x.waitRoom()
		x.mu.Unlock()
		if err != nil {
			return err
		}
	case *http2.WindowUpdateFrame:
		if err := x.windowUpdate(f); err != nil {
			return err
		}
	case *http2.RSTStreamFrame:
		x.fruitless += size
		if err := x.resetByClient(f); err != nil {
			return err
		}
	case *http2.PriorityFrame:
		x.fruitless += size
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	default: // GOAWAY among them: a client pushes nothing, so that there is nothing to stop
		x.fruitless += size
	}
	return x.worth()
}

// worth looks whether the client sends too much that is of no use.
func (x *session) worth() error {
	if x.fruitless <= mostFruitless+x.useful/8 {
		return nil
	}
	if now := x.server.now(); now-x.since > int64(time.Minute) {
		x.useful, x.fruitless, x.since = 0, 0, now
		return nil
	}
	return errAbuse
}

// settings takes the client's wishes, in their order.
func (x *session) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	initial := x.initial
	err := f.ForeachSetting(func(s http2.Setting) error {
		if s.ID == http2.SettingInitialWindowSize { // we use no table, no frames beyond the least of the most, and push nothing
			initial = int64(s.Val)
		}
		return s.Valid()
	})
	if err != nil {
		return err
	}
	grown := initial - x.initial // the last one holds, however many there are
	x.initial = initial
	for _, s := range x.streams {
		if s.window += grown; s.window > mostWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		if grown > 0 {
			s.moved.Broadcast()
		}
	}
	x.writeAck(http2.FrameSettings, nil)
	x.signal()
	return x.waitRoom()
}

const mostWindow = 1<<31 - 1

func (x *session) windowUpdate(f *http2.WindowUpdateFrame) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.StreamID == 0 {
		if x.window += int64(f.Increment); x.window > mostWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		x.pass()
		return nil
	}
	s := x.streams[f.StreamID]
	if s == nil {
		return x.known(f.StreamID)
	}
	if s.window += int64(f.Increment); s.window > mostWindow {
		return http2.StreamError{StreamID: s.id, Code: http2.ErrCodeFlowControl}
	}
	s.moved.Broadcast()
	return nil
}

// known tells whether a stream was begun once: frames for those that are over are late, others are wrong. The mutex is
// held.
func (x *session) known(id uint32) error {
	if id > x.last && !x.leaving || id%2 == 0 { // what came after GOAWAY is not looked at
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

func (x *session) resetByClient(f *http2.RSTStreamFrame) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.streams[f.StreamID]
	if s == nil {
		if i := x.lateAt(f.StreamID); i >= 0 { // it was answered: no abuse
			x.endLate(i)
		}
		return x.known(f.StreamID)
	}
	x.reset(s, errGoneClient)
	return x.abused()
}

// abused counts a request that cost something and brought the client nothing. The mutex is held.
func (x *session) abused() error {
	if x.abuse++; x.abuse > max(mostAbuse, 2*streamsOf(&x.info.Settings)) {
		return errAbuse
	}
	return nil
}

// data takes a piece of a body.
func (x *session) data(f *http2.DataFrame) error {
	size := int64(f.Length)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.unspent += size; x.unspent > connWindow {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	s := x.streams[f.StreamID]
	if s == nil || s.ended {
		x.giveBack(size)
		if i := x.lateAt(f.StreamID); i >= 0 {
			return x.drop(i, f)
		}
		if err := x.known(f.StreamID); err != nil {
			return err
		}
		if s == nil && (x.ours(f.StreamID) || f.StreamID > x.last) {
			return nil // it is over, and the client does not know yet
		}
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	return s.take(f.Data(), size, f.StreamEnded())
}

// giveBack lets the client send so many bytes more. The mutex is held.
func (x *session) giveBack(n int64) {
	x.unspent -= n
	if x.owed += n; x.owed >= connWindow/4 {
		x.writeWindow(0, x.owed)
		x.owed = 0
		x.signal()
	}
}

// refuse ends one request with an error.
func (x *session) refuse(e http2.StreamError) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.abused(); err != nil {
		return err
	}
	x.writeReset(e.StreamID, e.Code)
	if i := x.lateAt(e.StreamID); i >= 0 {
		x.endLate(i)
	}
	if s := x.streams[e.StreamID]; s != nil {
		x.reset(s, e)
	}
	x.signal()
	return x.waitRoom()
}

// mostForgiven is how many of the streams that we reset last are remembered: for them late frames are no error.
const mostForgiven = 64

// ours tells whether we reset a stream a short while ago. The mutex is held.
func (x *session) ours(id uint32) bool {
	for _, o := range x.forgiven {
		if o == id {
			return true
		}
	}
	return false
}

// forgive remembers a stream that we reset. The mutex is held.
func (x *session) forgive(id uint32) {
	if len(x.forgiven) < mostForgiven {
		x.forgiven = append(x.forgiven, id)
		return
	}
	x.forgiven[int(id/2)%mostForgiven] = id
}
