package site

import (
	"slices"
	"strings"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/certs"
)

// tlsSettings is how clients are spoken to over TLS, where an address does.
type tlsSettings struct {
	set   certs.Settings // but its Pairs; files as they are named
	certs []string       // ssl_certificate, in order
	keys  []string       // ssl_certificate_key of each
	at    *topology.Node // what named the first; nil: none is named
	ask   *topology.Node // ssl_verify_client; nil: not said
	ca    *topology.Node // ssl_client_certificate, likewise
	more  *topology.Node // ssl_trusted_certificate
	old   *topology.Node // ssl_session_ticket_key, the last one
	on    bool           // ssl on: every listen of the server is one with ssl
	http2 bool           // http2 on
}

func (s *tlsSettings) defaults() { s.set = certs.Settings{Depth: 1} }

var tlsSetters = map[string]setter{
	"ssl":                     onOff(func(s *settings) *bool { return &s.tls.on }),
	"http2":                   onOff(func(s *settings) *bool { return &s.tls.http2 }),
	"ssl_certificate":         setCertificate,
	"ssl_certificate_key":     setCertificateKey,
	"ssl_client_certificate":  noted(fileName(func(s *settings) *string { return &s.tls.set.CA }), func(s *settings) **topology.Node { return &s.tls.ca }),
	"ssl_trusted_certificate": noted(fileName(func(s *settings) *string { return &s.tls.set.Trusted }), func(s *settings) **topology.Node { return &s.tls.more }),
	"ssl_verify_client":       setVerifyClient,
	"ssl_verify_depth": func(l *level, n *topology.Node) {
		if v, ok := l.number(n, 0); ok {
			l.settings().tls.set.Depth = v
		}
	},
	"ssl_protocols":        setProtocols,
	"ssl_ciphers":          setCiphers,
	"ssl_ecdh_curve":       setCurves,
	"ssl_reject_handshake": onOff(func(s *settings) *bool { return &s.tls.set.Reject }),
	"ssl_session_tickets": func(l *level, n *topology.Node) {
		on := true
		if l.once(n) {
			l.flag(n, &on)
			l.settings().tls.set.NoTickets = !on
		}
	},
	"ssl_session_ticket_key": noted(setTicketKey, func(s *settings) **topology.Node { return &s.tls.old }),
	"ssl_session_timeout":    setSessionTimeout,
}

// noted keeps where a setting was said, for faults that are found later.
func noted(set setter, at func(*settings) **topology.Node) setter {
	return func(l *level, n *topology.Node) {
		set(l, n)
		*at(l.settings()) = n
	}
}

// plainFile takes the name of a file that every handshake needs, and so can't depend on one.
func (l *level) plainFile(n *topology.Node) bool {
	name := n.Args[0]
	switch {
	case strings.Contains(name, "$"):
		l.problem(n, "variables are not read here: certificates are loaded once", "the name of a PEM file; several server blocks, or several of these lines")
	case strings.HasPrefix(name, "data:"), strings.HasPrefix(name, "engine:"), strings.HasPrefix(name, "store:"):
		l.problem(n, quote(name)+" is no file", "the name of a PEM file")
	default:
		return true
	}
	return false
}

func setCertificate(l *level, n *topology.Node) {
	if !l.args(n, 1, 1) || !l.plainFile(n) {
		return
	}
	s := &l.settings().tls
	if l.first(n.Name) {
		s.certs, s.at = nil, n
	}
	s.certs = append(s.certs, n.Args[0])
}

func setCertificateKey(l *level, n *topology.Node) {
	if !l.args(n, 1, 1) || !l.plainFile(n) {
		return
	}
	s := &l.settings().tls
	if l.first(n.Name) {
		s.keys = nil
	}
	s.keys = append(s.keys, n.Args[0])
}

var verifications = map[string]certs.Verify{"off": certs.Off, "on": certs.On, "optional": certs.Optional, "optional_no_ca": certs.OptionalNoCA}

func setVerifyClient(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	v, ok := verifications[n.Args[0]]
	if !ok {
		l.problem(n, quote(n.Args[0]), "on, off, optional, optional_no_ca")
		return
	}
	l.settings().tls.set.Verify, l.settings().tls.ask = v, n
}

const allowedVersions = "TLSv1.2, TLSv1.3; older ones are passed over"

func setProtocols(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, -1) {
		return
	}
	least, most, err := certs.Versions(n.Args)
	if err != nil {
		l.problem(n, err.Error(), allowedVersions)
		return
	}
	for _, word := range n.Args {
		if word != "TLSv1.2" && word != "TLSv1.3" {
			l.notice(n, word+" is not spoken: TLS begins at 1.2 here")
		}
	}
	l.settings().tls.set.Min, l.settings().tls.set.Max = least, most
}

func setCiphers(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	if suites, ok := l.suites(n); ok {
		l.settings().tls.set.Suites = suites
	}
}

// suites reads a list of ciphers, and tells which of them are passed over.
func (l *level) suites(n *topology.Node) ([]uint16, bool) {
	suites, unknown, err := certs.Suites(n.Args[0])
	if err != nil {
		l.problem(n, err.Error(), "names of OpenSSL such as ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256, HIGH, DEFAULT")
		return nil, false
	}
	if len(unknown) > 0 {
		l.notice(n, "passed over, since Go does not speak them or only unsafely: "+strings.Join(unknown, " "))
	}
	return suites, true
}

func setCurves(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	curves, unknown, err := certs.Curves(n.Args[0])
	if err != nil {
		l.problem(n, err.Error(), "auto, "+strings.Join(certs.CurveNames(), ", ")+", several with : between")
		return
	}
	if len(unknown) > 0 {
		l.notice(n, "passed over, since Go does not speak them: "+strings.Join(unknown, " "))
	}
	l.settings().tls.set.Curves = curves
}

func setTicketKey(l *level, n *topology.Node) {
	if !l.args(n, 1, 1) || !l.plainFile(n) {
		return
	}
	s := &l.settings().tls.set
	if l.first(n.Name) {
		s.TicketKeys = nil
	}
	s.TicketKeys = append(slices.Clip(s.TicketKeys), n.Args[0])
}

func setSessionTimeout(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	d, err := topology.ParseTime(n.Args[0])
	if err != nil || d%time.Second != 0 {
		l.problem(n, quote(n.Args[0]), "a time of whole seconds such as 10m or 1d")
		return
	}
	l.settings().tls.set.TicketLife = max(d, time.Second)
}
