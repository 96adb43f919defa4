package proxy

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// TestMisdirectedOverHTTP2: a client that uses one connection for several names does not get to a server that asks for
// certificates by the handshake of another.
func TestMisdirectedOverHTTP2(t *testing.T) {
	s := newSecured(t, "http2 on;"+mutual, "open.example", "must.example", "may.example", "any.example")
	conf := &tls.Config{ServerName: "open.example", RootCAs: s.ca.Pool()}
	shows(s.ca.Leaf([]string{"me"}))(conf)
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: conf}
	defer tr.CloseIdleConnections()
	for _, tc := range []struct {
		host   string
		status int
		body   string
	}{
		{"open.example", 200, "open NONE"}, {"must.example", 421, "Misdirected"}, {"may.example", 421, "Misdirected"}, {"any.example", 421, "Misdirected"},
		{"MUST.example:443", 421, "Misdirected"}, {"open.example", 200, "open NONE"},
	} {
		r, _ := http.NewRequest("GET", "https://"+s.addr+"/", nil)
		r.Host = tc.host
		a, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if a.StatusCode != tc.status || a.ProtoMajor != 2 || !strings.Contains(string(body), tc.body) {
			t.Errorf("%s: %s %d %q; want %d %q", tc.host, a.Proto, a.StatusCode, body, tc.status, tc.body)
		}
	}
}

// TestVerifyThatComesWithAReload: a connection without a certificate is refused as soon as its server asks for one, and one
// with a certificate goes by the authorities of now.
func TestVerifyThatComesWithAReload(t *testing.T) {
	const head = `server { listen PORT ssl; server_name a; ssl_certificate DIR/a.crt; ssl_certificate_key DIR/a.key; location / { return 200 $ssl_client_verify; } `
	s := newSecured(t, head+"}", "a")
	certstest.Put(t, filepath.Join(s.dir, "other.pem"), certstest.New(t, "other").PEM())
	certstest.Put(t, filepath.Join(s.dir, "clients.pem"), s.ca.PEM())
	open := func(own *tls.Certificate) func() string {
		c, err := s.dial("a", shows(own))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		read := bufio.NewReader(c)
		return func() string {
			_, body := ask(t, c, read, "/", "a")
			return body
		}
	}
	want := func(step, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	before := open(nil)
	want("before", before(), "NONE")
	const verified = head + "ssl_verify_client on; ssl_client_certificate DIR/clients.pem; }"
	s.use(verified)
	want("without a certificate", before(), "No required SSL certificate was sent")
	mine := s.ca.Leaf([]string{"me"})
	byFile, byReload := open(mine), open(mine)
	want("with one", byFile(), "SUCCESS")
	want("with one", byReload(), "SUCCESS")
	s.use(strings.ReplaceAll(verified, "clients.pem", "other.pem"))
	want("after another file", byReload(), "The SSL certificate error")
	s.use(verified)
	want("after it is back", byFile(), "SUCCESS")
	certstest.Put(t, filepath.Join(s.dir, "clients.pem"), certstest.New(t, "new").PEM())
	s.p.RenewCertificates()
	want("after the file changed", byFile(), "The SSL certificate error")
	want("a new connection", open(mine)(), "The SSL certificate error")
}

// anySession is a client that offers the session that it has to whatever server.
type anySession struct{ last *tls.ClientSessionState }

func (a *anySession) Get(string) (*tls.ClientSessionState, bool) { return a.last, a.last != nil }

func (a *anySession) Put(_ string, s *tls.ClientSessionState) {
	if s != nil {
		a.last = s
	}
}

// TestSessionsAreForTheSameTrust: servers with the same certificate and other authorities don't resume each other's sessions.
func TestSessionsAreForTheSameTrust(t *testing.T) {
	s := newSecured(t, strings.ReplaceAll(`
server { listen PORT ssl; server_name a; CERT ssl_verify_client optional_no_ca; location / { return 200 "$ssl_session_reused $ssl_client_verify"; } }
server { listen PORT ssl; server_name twin; CERT ssl_verify_client optional_no_ca; location / { return 200 "$ssl_session_reused $ssl_client_verify"; } }
server { listen PORT ssl; server_name strict; CERT ssl_verify_client on; ssl_client_certificate DIR/ca.pem; location / { return 200 "$ssl_session_reused $ssl_client_verify"; } }
server { listen PORT ssl; server_name open; CERT location / { return 200 "$ssl_session_reused $ssl_client_verify"; } }`,
		"CERT", "ssl_certificate DIR/a.crt; ssl_certificate_key DIR/a.key;"), "a")
	stranger := certstest.New(t, "x").Leaf([]string{"me"})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, tc := range []struct{ first, second, want string }{
			{"a", "twin", "r FAILED:"}, {"a", "strict", "No required SSL certificate was sent"}, {"open", "strict", "No required SSL certificate was sent"}, {"strict", "open", ". NONE"},
		} {
			cache := new(anySession)
			for i, name := range []string{tc.first, tc.second} {
				_, body, _ := s.fetch(name, name, "/", func(c *tls.Config) {
					c.InsecureSkipVerify, c.ClientSessionCache, c.MaxVersion = true, cache, version
					if i == 0 {
						shows(stranger)(c)
					}
				})
				if i == 1 && !strings.Contains(body, tc.want) {
					t.Errorf("%s, then %s: %q, want %q", tc.first, tc.second, body, tc.want)
				}
			}
		}
	}
}
