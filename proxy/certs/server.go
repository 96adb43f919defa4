package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"
)

// Server is what listeners show and ask for, by one Settings. It is safe for concurrent use, and held until Close.
type Server struct {
	held
	set Settings
	now atomic.Pointer[identity]
}

// identity is one state of the files.
type identity struct {
	set         *Settings
	certs       []*tls.Certificate // in the order of preference among those that a client can use
	clients     *x509.CertPool     // nil: nobody may sign
	judged      verdicts
	tickets     *tls.Config // has the keys
	tag         [16]byte    // of sessions that may be resumed
	http1, both *tls.Config
}

// Config is for a handshake that begins now. With http2 the client may choose that protocol. It must not be changed.
func (s *Server) Config(http2 bool) *tls.Config {
	id := s.now.Load()
	if http2 && !s.set.HTTP1 {
		return id.both
	}
	return id.http1
}

// Verify is what was asked for.
func (s *Server) Verify() Verify { return s.set.Verify }

// load makes an identity of the files as they are.
func (s *Server) load(read reader, shared *tls.Config) error {
	id := &identity{set: &s.set, tickets: shared}
	sum := sha256.New()
	for _, p := range s.set.Pairs {
		c, err := read.pair(p)
		if err != nil {
			return err
		}
		id.certs = append(id.certs, c)
		sum.Write(c.Certificate[0])
	}
	// Of those that fit, a small and fast one: RSA is for clients that know no other.
	slices.SortStableFunc(id.certs, func(a, b *tls.Certificate) int { return rank(a) - rank(b) })
	pool, list, err := read.authorities(s.set.CA, s.set.Trusted)
	if err != nil {
		return err
	}
	if s.set.CA != "" || s.set.Trusted != "" {
		id.clients = pool
	}
	for _, chain := range list {
		for _, c := range chain {
			sum.Write(c.Raw)
		}
	}
	sum.Write(binary.BigEndian.AppendUint64([]byte{byte(s.set.Verify)}, uint64(s.set.Depth)))
	copy(id.tag[:], sum.Sum(nil))
	if len(s.set.TicketKeys) > 0 {
		keys := make([][32]byte, len(s.set.TicketKeys))
		for i, file := range s.set.TicketKeys {
			if keys[i], err = read.ticketKey(file); err != nil {
				return err
			}
		}
		id.tickets = &tls.Config{MinVersion: tls.VersionTLS12}
		id.tickets.SetSessionTicketKeys(keys)
	}
	id.http1 = id.config(list[0], "http/1.1", "http/1.0", "http/0.9")
	id.both = id.config(list[0], "h2", "http/1.1", "http/1.0", "http/0.9")
	s.now.Store(id)
	return nil
}

func rank(c *tls.Certificate) int {
	if kindOf(c.Leaf.PublicKey) == "RSA" {
		return 1
	}
	return 0
}

// config is the configuration of handshakes with those protocols. told are the authorities that clients are told of.
func (id *identity) config(told []*x509.Certificate, protocols ...string) *tls.Config {
	c := &tls.Config{MinVersion: max(id.set.Min, tls.VersionTLS12), MaxVersion: id.set.Max, CipherSuites: id.set.Suites, CurvePreferences: id.set.Curves}
	if id.set.Reject {
		return c // without a certificate the handshake ends with unrecognized_name
	}
	c.NextProtos = protocols
	c.GetCertificate = id.choose
	c.SessionTicketsDisabled = id.set.NoTickets
	c.WrapSession, c.UnwrapSession = id.wrap, id.unwrap
	if id.set.Verify != Off {
		// Whether it is good is for the first request to find out: the client is told in HTTP.
		c.ClientAuth = tls.RequestClientCert
		c.ClientCAs = x509.NewCertPool()
		for _, ca := range told {
			c.ClientCAs.AddCert(ca)
		}
	}
	return c
}

// choose finds the certificate for a client: of those that it can use the first that has its name, else the first.
func (id *identity) choose(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if len(id.certs) == 0 {
		return nil, nil // no certificate: unrecognized_name
	}
	if len(id.certs) == 1 {
		return id.certs[0], nil
	}
	nameless := *hello
	nameless.ServerName = ""
	var usable *tls.Certificate
	for _, c := range id.certs {
		if nameless.SupportsCertificate(c) != nil {
			continue
		}
		if hello.ServerName == "" || c.Leaf.VerifyHostname(hello.ServerName) == nil {
			return c, nil
		}
		if usable == nil {
			usable = c
		}
	}
	if usable == nil {
		usable = id.certs[0]
	}
	return usable, nil
}

// life is how long sessions may be resumed.
func (id *identity) life() time.Duration {
	if id.set.TicketLife > 0 {
		return id.set.TicketLife
	}
	return DefaultTicketLife
}

// Expires is when the first of the certificates does; zero without any.
func (s *Server) Expires() (first time.Time) {
	for _, c := range s.now.Load().certs {
		if first.IsZero() || c.Leaf.NotAfter.Before(first) {
			first = c.Leaf.NotAfter
		}
	}
	return first
}
