package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// publishedTLS is a proxy without a file, with a door for TLS and one service at /s.
func publishedTLS(t *testing.T, set func(dir string, c *Config)) *secured {
	t.Helper()
	s := &secured{ca: certstest.New(t, "ca"), dir: t.TempDir()}
	s.world = &world{t: t}
	certstest.Put(t, filepath.Join(s.dir, "ca.pem"), s.ca.PEM())
	s.issue("a.example")
	s.issue("b.example")
	s.world = newWorld(t, func(c *Config) { set(s.dir, c) })
	s.backed = newBackend(t, "b", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-Proto")+" "+r.Proto)
	})
	s.world.set("s", instance("s", s.backed.addr()))
	s.paths["/s"] = "s"
	s.apply()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() {
		served <- s.p.ServeDoor(l, Door{Addr: netip.MustParseAddrPort(s.addr), TLS: true, HTTP2: true})
	}()
	t.Cleanup(func() { _ = l.Close(); <-served })
	return s
}

func pairIn(dir, name string) certs.Pair {
	return certs.Pair{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key")}
}

func TestPublishedOverTLS(t *testing.T) {
	s := publishedTLS(t, func(dir string, c *Config) {
		c.TLS = certs.Settings{Pairs: []certs.Pair{pairIn(dir, "a.example"), pairIn(dir, "b.example")}, Verify: certs.Optional, CA: filepath.Join(dir, "ca.pem"), Depth: -1}
	})
	for name, cert := range map[string]string{"a.example": "a.example", "b.example": "b.example", "": "a.example"} {
		if status, body, shown := s.fetch(name, "x", "/s"); status != 200 || body != "https HTTP/1.1" || shown != cert {
			t.Errorf("%q: %d %q by the certificate of %s", name, status, body, shown)
		}
	}
	if status, _, _ := s.fetch("a.example", "x", "/s", shows(s.ca.Leaf([]string{"me"}))); status != 200 {
		t.Errorf("a good client: %d", status)
	}
	if status, body, _ := s.fetch("a.example", "x", "/s", shows(certstest.New(t, "x").Leaf([]string{"me"}))); status != 400 || !strings.Contains(body, "not accepted") {
		t.Errorf("a stranger: %d %q", status, body)
	}
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if a, text := ask(t, c, bufio.NewReader(c), "/s", "x"); a.StatusCode != 400 || !strings.Contains(text, "HTTPS") {
		t.Errorf("plain HTTP: %d %q", a.StatusCode, text)
	}
	if got := s.get("/s"); got.status != 200 || got.body != "http HTTP/1.1" {
		t.Errorf("the plain door: %d %q", got.status, got.body)
	}
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{ServerName: "a.example", RootCAs: s.ca.Pool()}}
	defer tr.CloseIdleConnections()
	a, err := (&http.Client{Transport: tr}).Get("https://" + s.addr + "/s")
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	if a.ProtoMajor != 2 || a.StatusCode != 200 {
		t.Errorf("%s %d", a.Proto, a.StatusCode)
	}
	certstest.Write(t, s.dir, "a.example", s.ca.Leaf([]string{"new.example"}))
	s.p.RenewCertificates()
	if _, _, shown := s.fetch("", "x", "/s"); shown != "new.example" {
		t.Errorf("after a change: %s", shown)
	}
}

func TestPublishedNeedsAClientCertificate(t *testing.T) {
	s := publishedTLS(t, func(dir string, c *Config) {
		c.TLS = certs.Settings{Pairs: []certs.Pair{pairIn(dir, "a.example")}, Verify: certs.On, CA: filepath.Join(dir, "ca.pem"), HTTP1: true}
	})
	if status, body, _ := s.fetch("a.example", "x", "/s"); status != 400 || !strings.Contains(body, "is needed") {
		t.Errorf("%d %q", status, body)
	}
	if status, _, _ := s.fetch("a.example", "x", "/s", shows(s.ca.Leaf([]string{"me"}))); status != 200 {
		t.Errorf("%d", status)
	}
	c, err := s.dial("a.example", func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} })
	if err != nil || c.ConnectionState().NegotiatedProtocol != "http/1.1" {
		t.Fatalf("%v: HTTP/2 is off", err)
	}
	_ = c.Close()
}

func TestConfigThatCantBeUsed(t *testing.T) {
	for name, c := range map[string]Config{
		"listener": {TLS: certs.Settings{Pairs: []certs.Pair{{Cert: "/none", Key: "/none"}}}}, "peers": {PeerOwn: certs.Pair{Cert: "/none", Key: "/none"}},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "/none") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInstancesOverTLS: whom of its instances of scheme https the proxy believes, and whether they believe the proxy.
func TestInstancesOverTLS(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	certstest.Write(t, dir, "me", ca.Leaf([]string{"proxy"}))
	own := pairIn(dir, "me")
	for name, tc := range map[string]struct {
		shown  *tls.Certificate
		asks   bool
		own    certs.Pair
		name   string
		status int
	}{
		"by its address":     {ca.Leaf([]string{"127.0.0.1"}), false, certs.Pair{}, "", 200},
		"by the name given":  {ca.Leaf([]string{"orders"}), false, certs.Pair{}, "orders", 200},
		"wrong name":         {ca.Leaf([]string{"orders"}), false, certs.Pair{}, "", 502},
		"expired":            {ca.Leaf([]string{"127.0.0.1"}, certstest.Expired), false, certs.Pair{}, "", 502},
		"unknown authority":  {certstest.New(t, "x").Leaf([]string{"127.0.0.1"}), false, certs.Pair{}, "", 502},
		"asks for ours":      {ca.Leaf([]string{"127.0.0.1"}), true, own, "", 200},
		"asks, we have none": {ca.Leaf([]string{"127.0.0.1"}), true, certs.Pair{}, "", 502},
	} {
		t.Run(name, func(t *testing.T) {
			var shown string
			b := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if len(r.TLS.PeerCertificates) > 0 {
					shown = r.TLS.PeerCertificates[0].DNSNames[0]
				}
			}))
			b.Config.ErrorLog = log.New(io.Discard, "", 0)
			b.TLS = &tls.Config{Certificates: []tls.Certificate{*tc.shown}}
			if tc.asks {
				b.TLS.ClientAuth, b.TLS.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
			}
			b.StartTLS()
			defer b.Close()
			w := newWorld(t, func(c *Config) {
				c.PeerTLS, c.PeerOwn = &tls.Config{RootCAs: ca.Pool(), ServerName: tc.name, MinVersion: tls.VersionTLS12}, tc.own
			})
			in := instance("s", b.Listener.Addr().String())
			in.Scheme = "https"
			w.set("s", in)
			w.paths["/s"] = "s"
			w.apply()
			if got := w.get("/s").status; got != tc.status || tc.own.Cert != "" && shown != "proxy" {
				t.Errorf("%d, shown %q; want %d", got, shown, tc.status)
			}
		})
	}
}

// TestBackendsOfAFileOverTLS is the same for proxy_pass https://, whose certificate of ours is another one when its files
// are.
func TestBackendsOfAFileOverTLS(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	certstest.Put(t, filepath.Join(dir, "ca.pem"), ca.PEM())
	certstest.Write(t, dir, "me", ca.Leaf([]string{"one"}))
	b := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].DNSNames[0]+" "+r.TLS.ServerName)
	}))
	b.Config.ErrorLog = log.New(io.Discard, "", 0)
	b.TLS = &tls.Config{Certificates: []tls.Certificate{*ca.Leaf([]string{"orders"})}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool()}
	b.StartTLS()
	defer b.Close()
	w := newWorld(t, nil)
	w.mustLoad(false, strings.NewReplacer("DIR", dir, "BACKEND", b.Listener.Addr().String()).Replace(`
proxy_ssl_verify on; proxy_ssl_trusted_certificate DIR/ca.pem; proxy_ssl_server_name on;
server { listen 8080; proxy_http_version 1.0; # no connection is kept
	location / { proxy_pass https://BACKEND; proxy_ssl_name orders; proxy_ssl_certificate DIR/me.crt; proxy_ssl_certificate_key DIR/me.key; }
	location /wrong { proxy_pass https://BACKEND; proxy_ssl_name other; proxy_ssl_certificate DIR/me.crt; proxy_ssl_certificate_key DIR/me.key; }
	location /none { proxy_pass https://BACKEND; proxy_ssl_name orders; }
	location /asked { proxy_pass https://BACKEND; proxy_ssl_name $arg_name; proxy_ssl_certificate DIR/me.crt; proxy_ssl_certificate_key DIR/me.key; } }`))
	for path, want := range map[string]string{"/": "200 one orders", "/wrong": "502", "/none": "502", "/asked?name=orders": "200 one orders", "/asked?name=x": "502"} {
		got := w.get(path)
		if text := http.StatusText(got.status); got.status == 200 {
			if "200 "+got.body != want {
				t.Errorf("%s: %q, want %q", path, got.body, want)
			}
		} else if want != "502" || got.status != 502 {
			t.Errorf("%s: %s, want %s", path, text, want)
		}
	}
	certstest.Write(t, dir, "me", ca.Leaf([]string{"two"}))
	w.p.RenewCertificates()
	if got := w.get("/"); got.body != "two orders" {
		t.Errorf("after our certificate changed: %q", got.body)
	}
}

// TestCertificatesAreLookedAt: a proxy that runs finds new files by itself.
func TestCertificatesAreLookedAt(t *testing.T) {
	s := publishedTLS(t, func(dir string, c *Config) { c.TLS = certs.Settings{Pairs: []certs.Pair{pairIn(dir, "a.example")}} })
	s.p.tls.files.Every = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.p.Run(ctx) }()
	certstest.Write(t, s.dir, "a.example", s.ca.Leaf([]string{"new.example"}))
	eventually(t, "the new certificate", func() bool {
		_, _, shown := s.fetch("", "x", "/s")
		return shown == "new.example"
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
