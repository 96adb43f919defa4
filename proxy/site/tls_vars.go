package site

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"time"

	"github.com/upstrand/upstrand/proxy/certs"
)

// ofTLS is a variable of connections with TLS.
func ofTLS(f func(r *request, cs *tls.ConnectionState) string) definition {
	return maybe(func(r *request) string {
		if r.in.TLS == nil {
			return ""
		}
		return f(r, r.in.TLS)
	})
}

// ofClient is a variable of the certificate that a client has shown, good or not.
func ofClient(f func(c *x509.Certificate) string) definition {
	return ofTLS(func(_ *request, cs *tls.ConnectionState) string {
		if len(cs.PeerCertificates) == 0 {
			return ""
		}
		return f(cs.PeerCertificates[0])
	})
}

var tlsVariables = definitions{
	"ssl_protocol":      ofTLS(func(_ *request, cs *tls.ConnectionState) string { return certs.VersionName(cs.Version) }),
	"ssl_cipher":        ofTLS(func(_ *request, cs *tls.ConnectionState) string { return certs.SuiteName(cs.CipherSuite) }),
	"ssl_curve":         ofTLS(func(_ *request, cs *tls.ConnectionState) string { return certs.CurveName(cs.CurveID) }),
	"ssl_server_name":   ofTLS(func(_ *request, cs *tls.ConnectionState) string { return cs.ServerName }),
	"ssl_alpn_protocol": ofTLS(func(_ *request, cs *tls.ConnectionState) string { return cs.NegotiatedProtocol }),
	"ssl_session_reused": ofTLS(func(_ *request, cs *tls.ConnectionState) string {
		if cs.DidResume {
			return "r"
		}
		return "."
	}),
	"ssl_early_data":    never(),
	"ssl_client_verify": ofTLS((*request).clientVerdict),

	"ssl_client_s_dn":         ofClient(certs.Subject),
	"ssl_client_i_dn":         ofClient(certs.Issuer),
	"ssl_client_serial":       ofClient(certs.Serial),
	"ssl_client_fingerprint":  ofClient(certs.Fingerprint),
	"ssl_client_raw_cert":     ofClient(certs.PEM),
	"ssl_client_escaped_cert": ofClient(func(c *x509.Certificate) string { return escapeComponent(certs.PEM(c)) }),
	"ssl_client_cert": ofClient(func(c *x509.Certificate) string {
		return strings.ReplaceAll(strings.TrimSuffix(certs.PEM(c), "\n"), "\n", "\n\t")
	}),
	"ssl_client_v_start":  ofClient(func(c *x509.Certificate) string { return certs.Moment(c.NotBefore) }),
	"ssl_client_v_end":    ofClient(func(c *x509.Certificate) string { return certs.Moment(c.NotAfter) }),
	"ssl_client_v_remain": ofClient(func(c *x509.Certificate) string { return certs.DaysLeft(c, time.Now()) }),
}

// refusedTLS are what crypto/tls does not tell.
var refusedTLS = func() definitions {
	out := definitions{}
	for _, name := range []string{"ssl_ciphers", "ssl_curves", "ssl_session_id", "ssl_client_s_dn_legacy", "ssl_client_i_dn_legacy", "ssl_sigalg", "ssl_client_sigalg"} {
		out[name] = definition{Refuse: "is not known here: Go's TLS does not tell it, or it is an old form"}
	}
	return out
}()

// clientVerdict is what the client's certificate is worth to the server of the request, or to that of the handshake when
// the first asks for none.
func (r *request) clientVerdict(cs *tls.ConnectionState) string {
	s := r.server.tls
	if s == nil || s.Verify() == certs.Off {
		at := r.site.addressOf(r.in.Local)
		if s = r.site.named(at, cs.ServerName).tls; s == nil {
			s = at.otherwise.tls
		}
	}
	if s == nil {
		return "NONE"
	}
	return s.Judge(cs).String()
}

// http2Name says how the client came to HTTP/2: by TLS or at once.
func http2Name(r *request) string {
	switch {
	case r.in.Proto != "HTTP/2.0":
		return ""
	case r.in.TLS != nil:
		return "h2"
	}
	return "h2c"
}

// escapeComponent quotes what a part of a URL may not hold.
func escapeComponent(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
