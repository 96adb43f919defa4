package site

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/certs"
)

// settleTLS loads the certificates of an address's servers. Those of servers on plain addresses alone are not looked at.
func (c *compiler) settleTLS(at *address, of netip.AddrPort) {
	if at.tls = at.tls && !c.options.Offline; !at.tls {
		return
	}
	first := at.otherwise
	if len(first.set.tls.certs) == 0 && !first.set.tls.set.Reject {
		c.problem(first.listenOf(of), `no ssl_certificate is said for the ssl of `+of.String(), "ssl_certificate and ssl_certificate_key in this server or in http; ssl_reject_handshake on")
		return
	}
	for _, s := range at.servers {
		if len(s.set.tls.certs) == 0 && !s.set.tls.set.Reject && first.set.tls.set.Reject {
			c.problem(s.listenOf(of), `no ssl_certificate is said for the ssl of `+of.String()+", and its default server rejects handshakes",
				"ssl_certificate and ssl_certificate_key in this server or in http; ssl_reject_handshake on")
			continue
		}
		c.holdTLS(s, first)
	}
}

// holdTLS loads what a server needs. One without a certificate has those of the default server.
func (c *compiler) holdTLS(s, first *server) {
	if s.tls != nil || s.broken {
		return
	}
	own := &s.set.tls
	set, from := own.set, own
	if len(own.certs) == 0 {
		from = &first.set.tls
	}
	node := from.at
	if node == nil {
		node = s.node
	}
	for i, cert := range from.certs {
		if i >= len(from.keys) {
			c.problem(node, "no ssl_certificate_key is said for certificate "+quote(cert), "one ssl_certificate_key for each ssl_certificate")
			s.broken = true
			return
		}
		set.Pairs = append(set.Pairs, certs.Pair{Cert: c.options.file(cert), Key: c.options.file(from.keys[i])})
	}
	if set.CA == "" && set.Trusted == "" && (set.Verify == certs.On || set.Verify == certs.Optional) {
		c.problem(own.ask, "no ssl_client_certificate is said", "ssl_client_certificate FILE, or optional_no_ca")
		s.broken = true
		return
	}
	for _, file := range []*string{&set.CA, &set.Trusted} {
		if *file != "" {
			*file = c.options.file(*file)
		}
	}
	set.TicketKeys = nil
	for _, file := range own.set.TicketKeys {
		set.TicketKeys = append(set.TicketKeys, c.options.file(file))
	}
	held, err := c.options.Certs.Server(set, c.options.KeepCerts)
	if err != nil {
		c.problem(own.blamed(err, &set, node), err.Error(), "")
		s.broken = true
		return
	}
	s.tls = held
	c.site.held = append(c.site.held, held)
}

// blamed is the line that names the file which can't be used; otherwise, for certificates and their keys.
func (s *tlsSettings) blamed(err error, set *certs.Settings, otherwise *topology.Node) *topology.Node {
	var of *certs.FileError
	switch {
	case !errors.As(err, &of):
		return otherwise
	case of.File == set.CA:
		return s.ca
	case of.File == set.Trusted:
		return s.more
	}
	return s.old
}

// listenOf is the line by which a server is on an address.
func (s *server) listenOf(of netip.AddrPort) (n *topology.Node) {
	n = s.node
	for _, l := range s.listens {
		if l.listen.Addr == of {
			n = l.node
		}
	}
	return n
}

// Handshake is the TLS configuration for a client that says hello where it was taken: that of the server whose name it
// wants, else of the default server.
func (s *Site) Handshake(local netip.AddrPort, hello *tls.ClientHelloInfo) (*tls.Config, error) {
	at := s.addressOf(local)
	if at == nil || !at.tls {
		return nil, fmt.Errorf("no server speaks TLS on %s any more", local)
	}
	server := s.named(at, hello.ServerName)
	if server.tls == nil {
		server = at.otherwise
	}
	return server.tls.Config(at.http2 || server.set.tls.http2), nil
}

// named is the server of a name that was said in a handshake.
func (s *Site) named(at *address, name string) *server {
	host, ok := hostOf(bytesOf(name))
	if !ok || host == "" {
		return at.otherwise
	}
	if found, ok := at.names.Find(host); ok || len(at.patterns) == 0 {
		if !ok {
			found = at.otherwise
		}
		return found
	}
	r := requests.Get().(*request) // for the captures of a pattern
	r.begin(s)
	defer r.release()
	return at.serverOf(r, host)
}

// misdirected tells whether a request wants another server than its connection's handshake, and one that asks for
// certificates: what was shown there may have been for the other one only.
func (r *request) misdirected(at *address, host string) bool {
	cs := r.in.TLS
	if cs == nil || cs.ServerName == "" || strings.EqualFold(cs.ServerName, host) {
		return false
	}
	return at.serverOf(r, host).set.tls.set.Verify != certs.Off
}

// checkTLS is the status for a request in plain HTTP where TLS is spoken, and for a client without the certificate that its
// server wants; 0: it may go on.
func (r *request) checkTLS() int {
	if r.in.TLS == nil {
		return statusPlain
	}
	if s := r.server.tls; s != nil && s.Verify() != certs.Off {
		return s.Refuses(s.Judge(r.in.TLS))
	}
	return 0
}

// The statuses of nginx's own, which clients are told as 400.
const (
	statusHeadTooLarge = 494
	statusPlain        = 497
)
