package site

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/certs/certstest"
	"github.com/upstrand/upstrand/proxy/forward"
)

// wires notes how the upstream is spoken to.
type wires struct {
	*world
	seen *Wire
}

func (w *wires) Opener(of *Wire) forward.Opener { w.seen = of; return echoing{} }

func (w *wires) Upstream(string) *Upstream { return w.world.Upstream("u") }

// wireOf is how a request is sent on.
func wireOf(t *testing.T, s *Site, w *world, line string, fields ...string) *Wire {
	t.Helper()
	seen := &wires{world: w}
	s.Handle(t.Context(), seen, requestOf(line, fields...), &collector{})
	if seen.seen == nil {
		t.Fatalf("%s went nowhere", line)
	}
	return seen.seen
}

// TestTLSOfPeers: nothing is verified unless proxy_ssl_verify says so, and then by the name of the target or another one.
func TestTLSOfPeers(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	certstest.Put(t, filepath.Join(dir, "ca.pem"), ca.PEM())
	certstest.Write(t, dir, "me", ca.Leaf([]string{"me"}))
	var said, shown string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if said = r.TLS.ServerName; len(r.TLS.PeerCertificates) > 0 {
			shown = certs.Subject(r.TLS.PeerCertificates[0])
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{*ca.Leaf([]string{"example.com", "127.0.0.1"})}, ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	defer s.Close()
	const verified = "proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; "
	for name, tc := range map[string]struct {
		lines, target string
		ok            bool
		said, shown   string
	}{
		"default":              {"", "any.example", true, "", ""},
		"name said":            {"proxy_ssl_server_name on;", "any.example:8443", true, "any.example", ""},
		"verified":             {verified, "example.com", true, "", ""},
		"verified, name said":  {verified + "proxy_ssl_server_name on;", "example.com", true, "example.com", ""},
		"verified, address":    {verified, "127.0.0.1:1", true, "", ""},
		"another name":         {verified, "any.example", false, "", ""},
		"another name, given":  {verified + "proxy_ssl_name example.com;", "any.example", true, "", ""},
		"given by the request": {verified + "proxy_ssl_name $arg_name:443; proxy_ssl_server_name on;", "any.example", true, "example.com", ""},
		"given badly":          {verified + "proxy_ssl_name $arg_none;", "example.com", false, "", ""},
		"variable target":      {verified, "$arg_name", true, "", ""},
		"variable target, bad": {verified, "x$arg_name", false, "", ""},
		"another version":      {"proxy_ssl_protocols TLSv1 TLSv1.1;", "any.example", false, "", ""},
		"ours":                 {"proxy_ssl_certificate me.crt; proxy_ssl_certificate_key me.key;", "any.example", true, "", "CN=me"},
		"ciphers":              {"proxy_ssl_protocols TLSv1.2; proxy_ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256;", "any.example", false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			said, shown = "", ""
			text := fmt.Sprintf("server { listen 8080; %s location / { proxy_pass https://%s; } }", tc.lines, tc.target)
			site, faults := compileWith(t, text, Options{Prefix: dir})
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			defer site.Close()
			w := &world{t: t, site: site, group: newWorld(t, "server { listen 8080; }").group}
			wire := wireOf(t, site, w, "GET /?name=example.com")
			conn, err := tls.Dial("tcp", s.Listener.Addr().String(), wire.TLS)
			if err == nil {
				_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
				_, _ = io.ReadAll(conn)
				_ = conn.Close()
			}
			if (err == nil) != tc.ok || wire.Scheme != "https" || wire.ServerName != tc.said && tc.ok {
				t.Errorf("%v, want ok %v; %s %q", err, tc.ok, wire.Scheme, wire.ServerName)
			}
			if err == nil && (said != tc.said || shown != tc.shown) {
				t.Errorf("the server was told %q and shown %q, want %q and %q", said, shown, tc.said, tc.shown)
			}
		})
	}
}

// TestTLSOfNamesThatClientsChoose: names that make no difference share a configuration, and others are not kept without end.
func TestTLSOfNamesThatClientsChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		lines string
		same  bool
	}{
		"not said":     {"", true},
		"said":         {"proxy_ssl_server_name on;", false},
		"given":        {"proxy_ssl_server_name on; proxy_ssl_name x;", true},
		"given to all": {"proxy_ssl_name x;", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "server { listen 8080; "+tc.lines+" location / { proxy_pass https://$arg_host; } }")
			defer w.site.Close()
			a, b := wireOf(t, w.site, w, "GET /?host=a"), wireOf(t, w.site, w, "GET /?host=b")
			if (a.TLS == b.TLS) != tc.same {
				t.Errorf("the same: %v", a.TLS == b.TLS)
			}
			p := w.site.first.otherwise.inner.static.root().set.proxy.tls
			for i := range 2 * mostTLSNames {
				wireOf(t, w.site, w, fmt.Sprintf("GET /?host=h%d", i))
			}
			if n := len(p.byName); n > mostTLSNames {
				t.Errorf("%d are kept", n)
			}
		})
	}
}
