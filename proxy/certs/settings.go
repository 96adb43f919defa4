package certs

import (
	"crypto/tls"
	"fmt"
	"time"
)

// Pair is the files of a certificate, with its chain behind it, and of its key. Both are PEM, and may be one file.
type Pair struct{ Cert, Key string }

// Verify is what clients must show.
type Verify uint8

// What can be asked of clients.
const (
	Off          Verify = iota // no certificate is asked for
	On                         // one that an authority of ours has signed
	Optional                   // one of ours, or none
	OptionalNoCA               // any, or none: whoever reads it has to judge
)

// Settings is how a listener speaks TLS. Servers that have equal ones share what is loaded.
type Settings struct {
	Pairs  []Pair
	Reject bool // end every handshake instead: no certificate is for that name

	Verify  Verify
	Depth   int    // certificates between the client's and a trusted one, at most; below 0: any number
	CA      string // file of authorities that clients are told of, and that may sign
	Trusted string // file of further ones, of which they are not told

	Min, Max uint16        // TLS versions; 0: 1.2, and the newest
	Suites   []uint16      // for TLS 1.2; nil: Go's choice. Their order is Go's
	Curves   []tls.CurveID // key exchanges; nil: Go's choice

	HTTP1 bool // no other protocol is chosen by ALPN, whatever Config is asked for

	NoTickets  bool          // no session is resumed
	TicketKeys []string      // files of 48 or 80 bytes: the first makes tickets, all are known; empty: keys of this process
	TicketLife time.Duration // of a session; 0: 5 min
}

// DefaultTicketLife is how long a session may be resumed.
const DefaultTicketLife = 5 * time.Minute

// files are all that is read.
func (s *Settings) files() (list []string) {
	for _, p := range s.Pairs {
		list = append(list, p.Cert, p.Key)
	}
	list = append(list, s.TicketKeys...)
	for _, f := range []string{s.CA, s.Trusted} {
		if f != "" {
			list = append(list, f)
		}
	}
	return list
}

// key is alike for equal settings.
func (s *Settings) key() string { return fmt.Sprintf("%#v", *s) }

// Peer is how backends are spoken to over TLS, but for names.
type Peer struct {
	Own     Pair   // shown to those that ask for one; empty files: none
	Verify  bool   // the backend's certificate
	Trusted string // file of the authorities that may sign it; empty: the system's
	Depth   int    // certificates between the backend's and a trusted one, at most; below 0: any number
	Fresh   bool   // no session is resumed

	Min, Max uint16 // TLS versions; 0: 1.2, and the newest
	Suites   []uint16
}

func (p *Peer) files() (list []string) {
	if p.Own.Cert != "" {
		list = append(list, p.Own.Cert, p.Own.Key)
	}
	if p.Verify && p.Trusted != "" {
		list = append(list, p.Trusted)
	}
	return list
}

func (p *Peer) key() string { return fmt.Sprintf("%#v", *p) }
