package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// Client is what is shown to backends and asked of them, by one Peer. Its configurations stay the same when the files
// change, so that connections which share one stay shared; handshakes that begin afterwards go by the new files. It is safe
// for concurrent use, and held until Close.
type Client struct {
	held
	set Peer
	now atomic.Pointer[peerFiles]

	mu      sync.Mutex
	configs map[peerName]*tls.Config
}

// peerFiles is one state of the files.
type peerFiles struct {
	own      *tls.Certificate // nil: none
	roots    *x509.CertPool   // nil: the system's
	sessions tls.ClientSessionCache
}

// peerName is what a configuration depends on beside the files.
type peerName struct{ name, said string }

// mostNames are kept at once: clients may choose the names of backends.
const mostNames = 1024

// Config is for connections to a backend that must have name in its certificate, if it is verified, and is told said in the
// handshake; empty: whatever the dialler says. A port behind name does not count. It must not be changed.
func (c *Client) Config(name, said string) *tls.Config {
	if !c.set.Verify {
		name = ""
	}
	key := peerName{name, said}
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.configs[key]; made != nil {
		return made
	}
	if c.configs == nil || len(c.configs) >= mostNames {
		c.configs = map[peerName]*tls.Config{}
	}
	key = peerName{strings.Clone(name), strings.Clone(said)} // they may be text of a request
	made := c.configure(key)
	c.configs[key] = made
	return made
}

func (c *Client) load(read reader, _ *tls.Config) error {
	f := &peerFiles{}
	var err error
	if c.set.Own.Cert != "" {
		if f.own, err = read.pair(c.set.Own); err != nil {
			return err
		}
	}
	if c.set.Verify && c.set.Trusted != "" {
		if f.roots, _, err = read.authorities(c.set.Trusted); err != nil {
			return err
		}
	}
	if !c.set.Fresh {
		f.sessions = tls.NewLRUClientSessionCache(0) // those of before were made as somebody else
	}
	c.now.Store(f)
	return nil
}

func (c *Client) configure(n peerName) *tls.Config {
	// Verified by ourselves, below: against files as they are by then, and a name that need not be said in the handshake.
	conf := &tls.Config{MinVersion: c.set.Min, MaxVersion: c.set.Max, CipherSuites: c.set.Suites, ServerName: n.said, InsecureSkipVerify: true} //nolint:gosec // see above
	if conf.MinVersion == 0 {
		conf.MinVersion = tls.VersionTLS12
	}
	if c.set.Own.Cert != "" {
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.now.Load().own, nil }
	}
	if c.set.Verify {
		conf.VerifyConnection = func(cs tls.ConnectionState) error { return c.verify(cs, n.name) }
	}
	if !c.set.Fresh {
		conf.ClientSessionCache = sessionsOf{c, n}
	}
	return conf
}

// sessionsOf are those of a name, made with the files of now.
type sessionsOf struct {
	client *Client
	of     peerName
}

func (s sessionsOf) key(k string) string { return s.of.name + "\x00" + s.of.said + "\x00" + k }

// Get is tls.ClientSessionCache's.
func (s sessionsOf) Get(key string) (*tls.ClientSessionState, bool) {
	return s.client.now.Load().sessions.Get(s.key(key))
}

// Put is tls.ClientSessionCache's.
func (s sessionsOf) Put(key string, cs *tls.ClientSessionState) {
	s.client.now.Load().sessions.Put(s.key(key), cs)
}

// verify checks a backend's certificate, also that of a session which is resumed.
func (c *Client) verify(cs tls.ConnectionState, name string) error {
	if len(cs.PeerCertificates) == 0 {
		return errors.New("the peer has no certificate")
	}
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	if name == "" {
		return errors.New("there is no name that the peer's certificate could have")
	}
	chains, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: c.now.Load().roots, Intermediates: between(cs.PeerCertificates), DNSName: name})
	if err != nil {
		return err
	}
	if !shortEnough(chains, c.set.Depth) {
		return fmt.Errorf("the peer's chain of certificates has more than %d between its own and a trusted one", c.set.Depth)
	}
	return nil
}
