package http2

import (
	"time"

	"github.com/upstrand/upstrand/proxy/front"
)

// What we tell clients in our SETTINGS, and by WINDOW_UPDATE of the connection.
const (
	mostStreams  = 128       // nginx's default of http2_max_concurrent_streams
	streamWindow = 256 << 10 // bytes of a body that may be on the way, or wait to be read
	connWindow   = 1 << 20   // of all bodies of a connection
	frameSize    = 16 << 10  // the least that RFC 9113 allows as the most: what we take, and what we send
)

// Bounds of what a client can make us hold or do.
const (
	mostWaiting = 64 << 10 // bytes that wait to be written; then whoever would add more waits
	mostAbuse   = 200      // requests taken back, or refused, more than were answered
	// mostFruitless is the bytes of frames in a minute that bring nothing, beyond an eighth of what brings something.
	mostFruitless = 1 << 20
	// lingering is how long a connection that is closed in good order is read on, so that the client sees all of it.
	lingering  = time.Second
	lingerMost = 256 << 10 // bytes
)

func streamsOf(s *front.Settings) int {
	if s.ClientStreams > 0 {
		return s.ClientStreams
	}
	return mostStreams
}

// tick is how often connections with these limits are to be looked at.
func tick(s *front.Settings) time.Duration {
	idle := s.ClientIdle
	if idle <= 0 {
		idle = time.Second
	}
	return max(min(s.ClientBody/4, s.ClientSend/4, idle/4, 250*time.Millisecond), time.Millisecond)
}
