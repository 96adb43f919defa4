package http1

import (
	"crypto/tls"
	"time"
)

// Settings are the limits of attempts that bring none of their own, and of connections that no upstream has settings
// for. A zero field means its default.
type Settings struct {
	Connect time.Duration // to have a connection (2 s): three tries fit into the 10 s of a derived route
	Read    time.Duration // without a byte from the peer, before the head or in the body (60 s)
	Send    time.Duration // without the peer taking a byte (60 s)
	Idle    time.Duration // a connection is kept unused for so long (60 s)
	IdleMax int           // and so many of them for each peer (64)
	HeadMax int           // bytes of an answer's head (256 KiB)
	Drain   time.Duration // a peer that left may end its answers and tunnels for so long (30 s)
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
	or(&s.Idle, time.Minute)
	or(&s.Drain, 30*time.Second)
	if s.IdleMax <= 0 {
		s.IdleMax = 64
	}
	if s.HeadMax <= 0 {
		s.HeadMax = 256 << 10
	}
	return s
}

// Wire is how one location speaks to its peers. It is comparable. A zero field means what the Settings say.
type Wire struct {
	Connect time.Duration // to have a connection, and again for the TLS handshake
	Read    time.Duration // without a byte from the peer
	Send    time.Duration // without the peer taking a byte
	HeadMax int           // bytes of an answer's head

	HTTP10   bool // requests say HTTP/1.0; a body whose length is unknown can't be sent then
	Headless bool // what does not begin as an HTTP answer is one of HTTP/0.9: forward.Headless
	NoHost   bool // a request without an authority goes without a Host line; else the peer's address is named

	Scheme     string      // http or https; empty: the peer's own
	TLS        *tls.Config // for https; nil: that of the Pools. Other configurations share no connection
	ServerName string      // SNI, and the name to be verified; empty: the configuration's, else the host of the address
}

func (w Wire) withDefaults(s Settings) Wire {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	or(&w.Connect, s.Connect)
	or(&w.Read, s.Read)
	or(&w.Send, s.Send)
	if w.HeadMax <= 0 {
		w.HeadMax = s.HeadMax
	}
	return w
}

// via is what must be alike for two attempts to share a connection.
type via struct {
	secure bool
	tls    *tls.Config
	name   string
}

func (w *Wire) via(scheme string, own *tls.Config) via {
	if w.Scheme != "" {
		scheme = w.Scheme
	}
	if scheme != "https" {
		return via{}
	}
	v := via{secure: true, tls: w.TLS, name: w.ServerName}
	if v.tls == nil {
		v.tls = own
	}
	return v
}
