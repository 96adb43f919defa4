// Package nethttp is the HTTP/1.1 engine that stands on net/http: a server whose requests meet the forwarding core as
// forward.Client and forward.Source, and pools of connections to peers that meet it as forward.Backend.
//
// It decides nothing: whether another attempt follows, and what a failure means, is said by package forward. It knows
// no routes and no topology; a peer's pool is told when the peer is gone.
//
// Lock order: Pools, conn, Pool; a replay's and a gate's are taken alone.
package nethttp

import "time"

// Settings are the limits of the engine. A zero field means its default.
type Settings struct {
	Connect      time.Duration // to have a connection to a peer (2 s): three tries fit into the 10 s of a derived route
	Read         time.Duration // without a byte from the peer, before the head or in the body (60 s)
	Send         time.Duration // without the peer taking a byte (60 s)
	PeerIdle     time.Duration // a connection to a peer is kept unused for so long (60 s)
	PeerIdleMax  int           // and so many of them for each peer (64)
	PeerHeader   int64         // bytes of an answer's head (256 KiB)
	Drain        time.Duration // a peer that left may end its answers and tunnels for so long (30 s)
	ClientHeader time.Duration // for a client to send the whole head of a request (60 s)
	ClientBody   time.Duration // without a byte of the body from the client, who is cut off then (60 s)
	ClientSend   time.Duration // without the client taking a byte (60 s)
	ClientIdle   time.Duration // a client's connection is kept unused for so long (75 s)
	ClientMax    int           // bytes of a request's head (64 KiB)
	TunnelIdle   time.Duration // without a byte either way in a tunnel (1 h)
	Replay       int           // bytes of a request's body that are held for another attempt (64 KiB)
}

func (s Settings) withDefaults() Settings {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	or(&s.Connect, 2*time.Second)
	or(&s.Read, time.Minute)
	or(&s.Send, time.Minute)
	or(&s.PeerIdle, time.Minute)
	or(&s.Drain, 30*time.Second)
	or(&s.ClientHeader, time.Minute)
	or(&s.ClientBody, time.Minute)
	or(&s.ClientSend, time.Minute)
	or(&s.ClientIdle, 75*time.Second)
	or(&s.TunnelIdle, time.Hour)
	if s.PeerIdleMax <= 0 {
		s.PeerIdleMax = 64
	}
	if s.PeerHeader <= 0 {
		s.PeerHeader = 256 << 10
	}
	if s.ClientMax <= 0 {
		s.ClientMax = 64 << 10
	}
	if s.Replay <= 0 {
		s.Replay = 64 << 10
	}
	return s
}
