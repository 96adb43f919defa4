package site

import (
	"crypto/tls"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// TestListensWithTLS: an address speaks TLS when one of its lines says so, or the old form does, and HTTP/2 likewise.
func TestListensWithTLS(t *testing.T) {
	dir := t.TempDir()
	certstest.Write(t, dir, "a", certstest.New(t, "ca").Leaf([]string{"a"}))
	s, faults := compileWith(t, `ssl_certificate a.crt; ssl_certificate_key a.key;
server { listen 1 ssl; listen 2; server_name a; }
server { listen 1; listen 3 http2; server_name b; http2 on; }
server { listen 4; listen 5; ssl on; http2 on; }
server { listen 6; }`, Options{Prefix: dir})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	defer s.Close()
	want := map[uint16]string{1: "tls", 2: "", 3: "http2", 4: "tls http2", 5: "tls http2", 6: ""}
	for _, l := range s.Listens() {
		got := strings.TrimSpace(map[bool]string{true: "tls "}[l.TLS] + map[bool]string{true: "http2"}[l.HTTP2])
		if got != want[l.Addr.Port()] {
			t.Errorf("%d: %q, want %q", l.Addr.Port(), got, want[l.Addr.Port()])
		}
	}
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port) }
	for name, protocol := range map[string]string{"a": "http/1.1", "b": "h2", "none": "http/1.1"} {
		c, err := s.Handshake(at(1), &tls.ClientHelloInfo{ServerName: name})
		if err != nil || c.NextProtos[0] != protocol {
			t.Errorf("%s: %v, %v; want %s first", name, c, err, protocol)
		}
	}
	if _, err := s.Handshake(at(6), &tls.ClientHelloInfo{}); err == nil {
		t.Error("a handshake where no server speaks TLS any more")
	}
}

// TestOfflineNeedsNoCertificates: a simulator runs where the files are not, and its requests came in however they say.
func TestOfflineNeedsNoCertificates(t *testing.T) {
	const text = `server { listen 8080 ssl; ssl_certificate /none/a; ssl_certificate_key /none/b; ssl_verify_client on; ssl_client_certificate /none/c;
	location / { return 200 ok; } location /p { proxy_pass https://127.0.0.1; proxy_ssl_certificate /none/a; proxy_ssl_certificate_key /none/b; } }`
	s, faults := compileWith(t, text, Options{Offline: true})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	defer s.Close()
	if !s.Listens()[0].TLS {
		t.Error("what the file says of its addresses is gone")
	}
	w := newWorld(t, "server { listen 8080; }")
	w.site = s
	if got := w.ask("GET /"); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
	if _, faults = compileWith(t, text, Options{}); len(faults) != 2 {
		t.Errorf("%v", faults)
	}
}

// TestFilesOfTLSThatCantBeUsed: the fault is on the line that names the file.
func TestFilesOfTLSThatCantBeUsed(t *testing.T) {
	dir := t.TempDir()
	certstest.Write(t, dir, "a", certstest.New(t, "ca").Leaf([]string{"a"}))
	const pair = " ssl_certificate a.crt; ssl_certificate_key a.key;"
	for text, want := range map[string]string{
		pair + "\nssl_client_certificate /none; ssl_verify_client on;": "ssl_client_certificate: authorities: open /none",
		pair + "\nssl_trusted_certificate /none;":                      "ssl_trusted_certificate: authorities: open /none",
		pair + "\nssl_session_ticket_key /none;":                       "ssl_session_ticket_key: key of session tickets: open /none",
		"\nssl_certificate /none; ssl_certificate_key a.key;":          "ssl_certificate: certificate: open /none",
	} {
		_, faults := compileWith(t, "server { listen 1 ssl;"+text+" }", Options{Prefix: dir}) // its second line is the file's third
		if len(faults) != 1 || !strings.Contains(faults[0].Error(), ":3: "+want) {
			t.Errorf("%s: %v; want %q", text, faults, want)
		}
	}
}

// TestCertificatesAreHeldAsLongAsASite: what a site holds is given back when it is closed, and when it can't be compiled.
func TestCertificatesAreHeldAsLongAsASite(t *testing.T) {
	dir := t.TempDir()
	certstest.Write(t, dir, "a", certstest.New(t, "ca").Leaf([]string{"a"}))
	store := new(certs.Store)
	const good = `server { listen 1 ssl; ssl_certificate a.crt; ssl_certificate_key a.key; location / { proxy_pass https://127.0.0.1; } }`
	s, faults := compileWith(t, good, Options{Prefix: dir, Certs: store})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if store.Expiry().IsZero() {
		t.Error("it is not held")
	}
	if _, faults := compileWith(t, good+" server { listen 2 what; }", Options{Prefix: dir, Certs: store}); len(faults) != 1 {
		t.Error(faults)
	}
	s.Close()
	if !store.Expiry().IsZero() {
		t.Error("it is held still")
	}
	if again, faults := compileWith(t, strings.ReplaceAll(good, "a.crt", filepath.Join(dir, "a.crt")), Options{Prefix: dir, Certs: store}); len(faults) > 0 {
		t.Error(faults)
	} else {
		again.Close()
	}
}
