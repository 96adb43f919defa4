package front

import "time"

// Settings are the limits of one server. A zero field means its default. They are compared with ==: there is one Server
// for each.
type Settings struct {
	ClientHeader   time.Duration // for a client to send the whole head of a request, and for its TLS handshake (60 s)
	ClientBody     time.Duration // without a byte of the body from the client, who is cut off then (60 s)
	ClientSend     time.Duration // without the client taking a byte (60 s)
	ClientIdle     time.Duration // a client's connection is kept unused for so long (75 s); negative: it is not kept
	ClientAge      time.Duration // from which on it is not kept (no limit)
	ClientRequests int           // that a connection may carry (no limit)
	ClientStreams  int           // requests that an HTTP/2 connection may carry at once (128)
	ClientMax      int           // bytes of a request's head (64 KiB), else 431, and 414 when its first line alone is longer
	ClientLine     int           // bytes of its first line, else 414, and of each field, else 400 (no limit but ClientMax)
	ClientLines    int           // bytes of its first line and all fields, else 400 (no limit but ClientMax)
	TunnelIdle     time.Duration // without a byte either way in a tunnel (1 h)
	Replay         int           // bytes of a request's body that are held in memory for another attempt (64 KiB)
	Folder         string        // for bodies that are taken in whole and do not fit there; empty: the system's for such files

	TLS           bool // connections begin with a TLS handshake
	HTTP2         bool // HTTP/2 is spoken too: after TLS by ALPN, else by prior knowledge
	ProxyProtocol bool // connections begin with a header of the PROXY protocol

	Listener        string // tells servers apart whose limits are the same; for those that count connections
	Conns           int    // open at once; one more is closed at once (no limit)
	ConnsPerAddress int    // of one client's address (no limit)
}

func (s Settings) withDefaults() Settings {
	or := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	or(&s.ClientHeader, time.Minute)
	or(&s.ClientBody, time.Minute)
	or(&s.ClientSend, time.Minute)
	or(&s.ClientIdle, 75*time.Second)
	or(&s.TunnelIdle, time.Hour)
	if s.ClientMax <= 0 {
		s.ClientMax = max(64<<10, s.ClientLines)
	}
	if s.Replay <= 0 {
		s.Replay = 64 << 10
	}
	return s
}
