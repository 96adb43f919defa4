package http2

import (
	"golang.org/x/net/http2"
)

const (
	flagEnd      = 1 // END_STREAM, or ACK
	flagEndHeads = 4
	headSize     = 9 // of a frame
)

// appendFrame appends a frame's first nine bytes.
func appendFrame(b []byte, size int, kind http2.FrameType, flags byte, id uint32) []byte {
	return append(b, byte(size>>16), byte(size>>8), byte(size), byte(kind), flags, byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

func append32(b []byte, v uint32) []byte {
	return append(b, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func appendSetting(b []byte, id http2.SettingID, v uint32) []byte {
	return append32(append(b, byte(id>>8), byte(id)), v)
}

// What follows adds frames to out; the mutex is held. None is sent before signal.

func (x *session) writeSettings() {
	x.out = appendFrame(x.out, 3*6, http2.FrameSettings, 0, 0)
	x.out = appendSetting(x.out, http2.SettingMaxConcurrentStreams, uint32(streamsOf(&x.info.Settings)))
	x.out = appendSetting(x.out, http2.SettingInitialWindowSize, streamWindow)
	x.out = appendSetting(x.out, http2.SettingMaxHeaderListSize, uint32(x.info.Settings.ClientMax))
	x.writeWindow(0, connWindow-65535)
}

func (x *session) writeAck(kind http2.FrameType, data []byte) {
	x.out = append(appendFrame(x.out, len(data), kind, flagEnd, 0), data...)
}

func (x *session) writeWindow(id uint32, n int64) {
	x.out = append32(appendFrame(x.out, 4, http2.FrameWindowUpdate, 0, id), uint32(n))
}

func (x *session) writeReset(id uint32, code http2.ErrCode) {
	x.forgive(id)
	x.out = append32(appendFrame(x.out, 4, http2.FrameRSTStream, 0, id), uint32(code))
}

// writeGoAway also keeps later streams from being served.
func (x *session) writeGoAway(code http2.ErrCode) {
	x.leaving = true
	x.out = append32(append32(appendFrame(x.out, 8, http2.FrameGoAway, 0, 0), x.last), uint32(code))
}

// writeHead adds a head that may take several frames.
func (x *session) writeHead(id uint32, block []byte, end bool) {
	kind, flags := http2.FrameHeaders, byte(0)
	if end {
		flags = flagEnd
	}
	for {
		n := min(len(block), frameSize)
		if n == len(block) {
			flags |= flagEndHeads
		}
		x.out = append(appendFrame(x.out, n, kind, flags, id), block[:n]...)
		if block = block[n:]; len(block) == 0 {
			return
		}
		kind, flags = http2.FrameContinuation, 0
	}
}

func (x *session) writeData(id uint32, data []byte, end bool) {
	flags := byte(0)
	if end {
		flags = flagEnd
	}
	x.out = append(appendFrame(x.out, len(data), http2.FrameData, flags, id), data...)
}

// signal has what is in out sent.
func (x *session) signal() {
	if x.flushing || x.broken != nil {
		return
	}
	x.flushing = true
	select {
	case x.wake <- struct{}{}:
	default:
	}
}
