package site

import (
	"crypto/tls"
	"strings"
	"sync"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/certs"
)

// sslSettings is how peers are spoken to over TLS.
type sslSettings struct {
	peer       certs.Peer // files as they are named
	name       *template  // proxy_ssl_name; nil: $proxy_host
	serverName bool       // proxy_ssl_server_name: say the name in the handshake
}

func defaultSSL() sslSettings { return sslSettings{peer: certs.Peer{Min: tls.VersionTLS12, Depth: 1}} }

var sslSetters = map[string]setter{
	"proxy_ssl_server_name":         onOff(func(s *settings) *bool { return &s.proxy.ssl.serverName }),
	"proxy_ssl_verify":              onOff(func(s *settings) *bool { return &s.proxy.ssl.peer.Verify }),
	"proxy_ssl_name":                setSSLName,
	"proxy_ssl_trusted_certificate": fileName(func(s *settings) *string { return &s.proxy.ssl.peer.Trusted }),
	"proxy_ssl_certificate":         fileName(func(s *settings) *string { return &s.proxy.ssl.peer.Own.Cert }),
	"proxy_ssl_certificate_key":     fileName(func(s *settings) *string { return &s.proxy.ssl.peer.Own.Key }),
	"proxy_ssl_protocols":           setSSLProtocols,
	"proxy_ssl_verify_depth":        setSSLDepth,
	"proxy_ssl_ciphers":             setSSLCiphers,
	"proxy_ssl_session_reuse": func(l *level, n *topology.Node) {
		on := true
		if l.once(n) {
			l.flag(n, &on)
			l.settings().proxy.ssl.peer.Fresh = !on
		}
	},
}

// fileName is a setter for a file that is the same for all requests.
func fileName(of func(*settings) *string) setter {
	return func(l *level, n *topology.Node) {
		if l.once(n) && l.args(n, 1, 1) && l.plainFile(n) {
			*of(l.settings()) = n.Args[0]
		}
	}
}

func setSSLName(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	l.settings().proxy.ssl.name = nil
	if n.Args[0] != "$proxy_host" {
		l.settings().proxy.ssl.name = l.template(n, n.Args[0])
	}
}

func setSSLDepth(l *level, n *topology.Node) {
	if v, ok := l.number(n, 0); ok {
		l.settings().proxy.ssl.peer.Depth = v
	}
}

var tlsVersions = map[string]uint16{"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

func setSSLProtocols(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, -1) {
		return
	}
	s := &l.settings().proxy.ssl.peer
	s.Min, s.Max = 0, 0
	for _, word := range n.Args {
		v, ok := tlsVersions[word]
		if !ok {
			l.problem(n, quote(word), "TLSv1, TLSv1.1, TLSv1.2, TLSv1.3")
			return
		}
		if s.Min == 0 || v < s.Min {
			s.Min = v
		}
		s.Max = max(s.Max, v)
	}
}

func setSSLCiphers(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	if suites, ok := l.suites(n); ok {
		l.settings().proxy.ssl.peer.Suites = suites
	}
}

// settleSSL loads what is needed for a target of https, or one that may be.
func (l *level) settleSSL(p *proxySettings) {
	if p.tls = nil; p.target.text == nil && p.target.scheme != "https" {
		return
	}
	way, _, _ := strings.Cut(p.target.node.Name, "_")
	peer := p.ssl.peer
	switch {
	case peer.Verify && peer.Trusted == "":
		l.problem(p.target.node, way+"_ssl_verify on needs "+way+"_ssl_trusted_certificate", "")
		return
	case peer.Own.Cert != "" && peer.Own.Key == "":
		l.problem(p.target.node, "no "+way+"_ssl_certificate_key is said for certificate "+quote(peer.Own.Cert), "")
		return
	}
	for _, file := range []*string{&peer.Own.Cert, &peer.Own.Key, &peer.Trusted} {
		if *file != "" {
			*file = l.options.file(*file)
		}
	}
	if peer.Own.Cert == "" {
		peer.Own.Key = ""
	}
	if l.options.Offline {
		peer = certs.Peer{}
	}
	client, err := l.options.Certs.Client(peer, l.options.KeepCerts)
	if err != nil {
		l.problem(p.target.node, "TLS to peers: "+err.Error(), "")
		return
	}
	l.site.held = append(l.site.held, client)
	all := &peerTLS{client: client, name: p.ssl.name, says: p.ssl.serverName, verifies: peer.Verify, plain: withScheme(p.wire, "http"), secure: withScheme(p.wire, "https")}
	constant := p.ssl.name == nil
	if !constant {
		_, constant = p.ssl.name.Constant()
	}
	if p.target.text == nil && constant {
		p.wire = *all.wire(nil, p.target.host)
		return
	}
	p.tls = all
}

func withScheme(w Wire, scheme string) *Wire {
	w.Scheme = scheme
	return &w
}

// peerTLS is how the peers of a location are spoken to where that depends on the request.
type peerTLS struct {
	client        *certs.Client
	name          *template // nil: the target's
	says          bool      // the name is said in the handshake
	verifies      bool
	plain, secure *Wire // without TLS, and with it but for names

	mu     sync.Mutex
	byName map[string]*Wire
}

// mostTLSNames are kept at once: a target may have any name that a client asks for.
const mostTLSNames = 1024

// wire is how a target of that host is spoken to by https.
func (t *peerTLS) wire(r *request, host string) *Wire {
	name := ""
	switch {
	case !t.says && !t.verifies: // it makes no difference
	case t.name != nil:
		name = t.name.Value(r)
	default:
		name = host
	}
	if h, _, ok := cutAuthority(name); ok {
		name = h
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.byName[name]; w != nil {
		return w
	}
	if t.byName == nil || len(t.byName) >= mostTLSNames {
		t.byName = map[string]*Wire{}
	}
	name = strings.Clone(name) // it may be text of the request
	said := ""
	if t.says {
		said = strings.Trim(name, "[]")
	}
	w := *t.secure
	w.TLS, w.ServerName = t.client.Config(name, said), said
	t.byName[name] = &w
	return &w
}
