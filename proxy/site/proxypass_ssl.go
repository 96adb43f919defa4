package site

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// sslSettings is how peers are spoken to over TLS. It is comparable: equal ones share their configuration, and so their
// connections.
type sslSettings struct {
	name       string // proxy_ssl_name; empty: $proxy_host
	serverName bool   // proxy_ssl_server_name: say the name in the handshake
	verify     bool
	depth      int    // certificates between the peer's and a trusted one
	trusted    string // file
	cert, key  string // files
	least      uint16 // TLS version
	most       uint16
}

func defaultSSL() sslSettings { return sslSettings{least: tls.VersionTLS12, depth: 1} }

var sslSetters = map[string]setter{
	"proxy_ssl_server_name":         onOff(func(s *settings) *bool { return &s.proxy.ssl.serverName }),
	"proxy_ssl_verify":              onOff(func(s *settings) *bool { return &s.proxy.ssl.verify }),
	"proxy_ssl_session_reuse":       unseen("on", "off"),
	"proxy_ssl_name":                setSSLName,
	"proxy_ssl_trusted_certificate": fileName(func(s *settings) *string { return &s.proxy.ssl.trusted }),
	"proxy_ssl_certificate":         fileName(func(s *settings) *string { return &s.proxy.ssl.cert }),
	"proxy_ssl_certificate_key":     fileName(func(s *settings) *string { return &s.proxy.ssl.key }),
	"proxy_ssl_protocols":           setSSLProtocols,
	"proxy_ssl_verify_depth":        setSSLDepth,
	"proxy_ssl_ciphers":             setSSLCiphers,
}

func fileName(of func(*settings) *string) setter {
	return func(l *level, n *topology.Node) {
		if l.once(n) && l.args(n, 1, 1) {
			if *of(l.settings()) = n.Args[0]; strings.Contains(n.Args[0], "$") {
				l.problem(n, "variables are not read here", "the name of a file")
			}
		}
	}
}

func setSSLName(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	switch name := n.Args[0]; {
	case name == "$proxy_host":
		l.settings().proxy.ssl.name = ""
	case strings.Contains(name, "$"):
		l.problem(n, "a name that differs from request to request is not built", "a name, or $proxy_host")
	default:
		l.settings().proxy.ssl.name = name
	}
}

func setSSLDepth(l *level, n *topology.Node) {
	if v, ok := l.number(n, 0); ok {
		l.settings().proxy.ssl.depth = v
	}
}

var tlsVersions = map[string]uint16{"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

func setSSLProtocols(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, -1) {
		return
	}
	s := &l.settings().proxy.ssl
	s.least, s.most = 0, 0
	for _, word := range n.Args {
		v, ok := tlsVersions[word]
		if !ok {
			l.problem(n, quote(word), "TLSv1, TLSv1.1, TLSv1.2, TLSv1.3")
			return
		}
		if s.least == 0 || v < s.least {
			s.least = v
		}
		s.most = max(s.most, v)
	}
}

// setSSLCiphers accepts the default alone: Go chooses ciphers itself, and none of its choice is weak.
func setSSLCiphers(l *level, n *topology.Node) {
	if l.once(n) && l.args(n, 1, 1) && n.Args[0] != "DEFAULT" && !strings.HasPrefix(n.Args[0], "HIGH") {
		l.problem(n, "ciphers are not chosen by hand", "DEFAULT, HIGH…, or leave the line out")
	}
}

// tlsFor is the TLS configuration for a target of that name. It reads the files that are named.
func (o *Options) tlsFor(s sslSettings) (*tls.Config, error) {
	c := &tls.Config{MinVersion: s.least, MaxVersion: s.most, InsecureSkipVerify: true} //nolint:gosec // proxy_ssl_verify is off by default, as in nginx
	if s.serverName {
		c.ServerName = s.name
	}
	read := o.ReadFile
	if read == nil {
		read = readRegular
	}
	if s.verify {
		pool, err := roots(read, o.file(s.trusted), s.trusted != "")
		if err != nil {
			return nil, err
		}
		c.VerifyConnection = verifier(pool, s.name, s.depth)
	}
	if s.cert != "" {
		cert, err := read(o.file(s.cert))
		if err != nil {
			return nil, fmt.Errorf("proxy_ssl_certificate: %w", err)
		}
		key, err := read(o.file(s.key))
		if err != nil {
			return nil, fmt.Errorf("proxy_ssl_certificate_key: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("proxy_ssl_certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func roots(read func(string) ([]byte, error), file string, named bool) (*x509.CertPool, error) {
	if !named {
		return nil, errors.New("proxy_ssl_verify on needs proxy_ssl_trusted_certificate")
	}
	pem, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("proxy_ssl_trusted_certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("proxy_ssl_trusted_certificate: no certificate in %s", file)
	}
	return pool, nil
}

// verifier checks a peer's certificate against a name that was perhaps never said in the handshake.
func verifier(pool *x509.CertPool, name string, depth int) func(tls.ConnectionState) error {
	host := name
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return func(cs tls.ConnectionState) error {
		if len(cs.PeerCertificates) == 0 {
			return errors.New("the peer has no certificate")
		}
		between := x509.NewCertPool()
		for _, c := range cs.PeerCertificates[1:] {
			between.AddCert(c)
		}
		chains, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, DNSName: host})
		if err != nil {
			return err
		}
		for _, c := range chains {
			if len(c)-2 <= depth {
				return nil
			}
		}
		return fmt.Errorf("the peer's chain of certificates is longer than proxy_ssl_verify_depth %d allows", depth)
	}
}
