package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

const securedHosts = `
server { listen PORT ssl default_server; server_name first.example; ssl_certificate DIR/first.example.crt; ssl_certificate_key DIR/first.example.key;
	location / { return 200 "first $ssl_server_name $scheme $https"; } }
server { listen PORT; server_name second.example *.second.example; ssl_certificate DIR/second.example.crt; ssl_certificate_key DIR/second.example.key;
	location / { return 200 second; } }
server { listen PORT; server_name ~^(?<shop>\w+)\.shop\.example$; ssl_certificate DIR/shop.example.crt; ssl_certificate_key DIR/shop.example.key;
	location / { return 200 "shop $shop"; } }
server { listen PORT; server_name bare.example; location / { return 200 bare; } }
server { listen PORT; server_name none.example; ssl_reject_handshake on; }
`

// TestServerOfAHandshake: which certificate a client sees and which server answers.
func TestServerOfAHandshake(t *testing.T) {
	both(t, securedHosts, []string{"first.example", "second.example", "shop.example"}, servesByName)
}

func servesByName(t *testing.T, s *secured) {
	anyone := func(c *tls.Config) { c.InsecureSkipVerify = true }
	for _, tc := range []struct{ said, host, cert, body string }{
		{"first.example", "first.example", "first.example", "first first.example https on"},
		{"second.example", "second.example", "second.example", "second"},
		{"SECOND.example", "Second.Example:1", "second.example", "second"},
		{"a.second.example", "a.second.example", "second.example", "second"},
		{"x.shop.example", "x.shop.example", "shop.example", "shop x"},
		{"bare.example", "bare.example", "first.example", "bare"},
		{"unknown.example", "unknown.example", "first.example", "first unknown.example https on"},
		{"", "second.example", "first.example", "second"},
		{"first.example", "second.example", "first.example", "second"}, // over one connection, as nginx lets it
	} {
		status, body, cert := s.fetch(tc.said, tc.host, "/", anyone)
		if status != 200 || body != tc.body || cert != tc.cert {
			t.Errorf("%s, then %s: %d %q by the certificate of %s; want %q by %s", tc.said, tc.host, status, body, cert, tc.body, tc.cert)
		}
	}
	if _, err := s.dial("none.example"); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("a handshake that is rejected: %v", err)
	}
}

// TestPlainHTTPToTLS: the client is told in the protocol that it speaks, and error_page 497 acts.
func TestPlainHTTPToTLS(t *testing.T) {
	both(t, `
server { listen PORT ssl; server_name a; ssl_certificate DIR/a.crt; ssl_certificate_key DIR/a.key; location / { return 200 no; } }
server { listen PORT ssl; server_name b; ssl_certificate DIR/a.crt; ssl_certificate_key DIR/a.key; error_page 497 =301 https://$host$request_uri; }
server { listen PORT ssl; server_name c; ssl_certificate DIR/a.crt; ssl_certificate_key DIR/a.key; error_page 497 /page; location = /page { return 200 "page $scheme"; } }`, []string{"a"}, tellsPlain)
}

func tellsPlain(t *testing.T, s *secured) {
	for host, want := range map[string]string{"a": "400 The plain HTTP request was sent to HTTPS port", "b": "301 https://b/x?y", "c": "400 page http"} {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		a, text := ask(t, c, bufio.NewReader(c), "/x?y", host)
		if got := fmt.Sprint(a.StatusCode, " ", a.Header.Get("Location"), text); !strings.HasPrefix(got, strings.Fields(want)[0]) || !strings.Contains(got, strings.SplitN(want, " ", 2)[1]) || !a.Close {
			t.Errorf("%s: %s, close %v; want %s", host, got, a.Close, want)
		}
		_ = c.Close()
	}
}

const mutual = `
map $ssl_client_verify $v { default $ssl_client_verify; }
server { listen PORT ssl; server_name open.example; ssl_certificate DIR/open.example.crt; ssl_certificate_key DIR/open.example.key;
	location / { return 200 "open $ssl_client_verify"; } }
server { listen PORT ssl; server_name must.example; ssl_certificate DIR/must.example.crt; ssl_certificate_key DIR/must.example.key;
	ssl_verify_client on; ssl_client_certificate DIR/ca.pem;
	location / { return 200 "must $v $ssl_client_s_dn"; } }
server { listen PORT ssl; server_name may.example; ssl_certificate DIR/may.example.crt; ssl_certificate_key DIR/may.example.key;
	ssl_verify_client optional; ssl_client_certificate DIR/ca.pem; error_page 495 =403 /bad;
	location / { return 200 "may $v"; } location = /bad { return 403 "bad $v"; } }
server { listen PORT ssl; server_name any.example; ssl_certificate DIR/any.example.crt; ssl_certificate_key DIR/any.example.key;
	ssl_verify_client optional_no_ca; location / { return 200 "any $v"; } }
`

func TestClientCertificates(t *testing.T) {
	both(t, mutual, []string{"open.example", "must.example", "may.example", "any.example"}, asksForCertificates)
}

func asksForCertificates(t *testing.T, s *secured) {
	good, stranger, old := s.ca.Leaf([]string{"me"}), certstest.New(t, "x").Leaf([]string{"me"}), s.ca.Leaf([]string{"me"}, certstest.Expired)
	for _, tc := range []struct {
		said, host string
		own        *tls.Certificate
		status     int
		body       string
	}{
		{"must.example", "must.example", good, 200, "must SUCCESS CN=me"},
		{"must.example", "must.example", nil, 400, "No required SSL certificate was sent"},
		{"must.example", "must.example", stranger, 400, "The SSL certificate error"},
		{"must.example", "must.example", old, 400, "The SSL certificate error"},
		{"may.example", "may.example", good, 200, "may SUCCESS"},
		{"may.example", "may.example", nil, 200, "may NONE"},
		{"may.example", "may.example", old, 403, "bad FAILED:certificate has expired"},
		{"any.example", "any.example", stranger, 200, "any FAILED:unable to verify the first certificate"},
		{"any.example", "any.example", old, 400, "The SSL certificate error"},
		{"open.example", "open.example", good, 200, "open NONE"},
		{"open.example", "must.example", good, 421, "Misdirected"},
		{"must.example", "may.example", good, 421, "Misdirected"},
		{"may.example", "open.example", good, 200, "open SUCCESS"},
		{"", "must.example", good, 400, "No required SSL certificate was sent"},
	} {
		status, body, _ := s.fetch(tc.said, tc.host, "/", shows(tc.own))
		if status != tc.status || !strings.Contains(body, tc.body) {
			t.Errorf("%s, then %s: %d %q; want %d %q", tc.said, tc.host, status, body, tc.status, tc.body)
		}
	}
}

// TestReloadOfCertificates: new files are in force for new connections; one that is open goes on as it was, and neither
// broken files nor a reload of the configuration cost a request.
func TestReloadOfCertificates(t *testing.T) {
	text := `server { listen PORT ssl; ssl_certificate DIR/a.crt; ssl_certificate_key DIR/a.key; location / { proxy_pass http://BACKEND; } }`
	s := newSecured(t, text, "a")
	var stop atomic.Bool
	var clients sync.WaitGroup
	var asked atomic.Int64
	for range 4 {
		clients.Go(func() {
			for !stop.Load() {
				c, err := s.dial("", nil...)
				if err != nil {
					t.Error(err)
					return
				}
				r := bufio.NewReader(c)
				for range 5 {
					if a, body := ask(t, c, r, "/", "a"); a.StatusCode != 200 || body != "b" {
						t.Errorf("%d %q", a.StatusCode, body)
					}
					asked.Add(1)
				}
				_ = c.Close()
			}
		})
	}
	kept, err := s.dial("a")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	read := bufio.NewReader(kept)
	ask(t, kept, read, "/", "a")
	shown := func() string {
		c, err := s.dial("")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	for i := range 20 {
		name := fmt.Sprint("n", i)
		certstest.Write(t, s.dir, "a", s.ca.Leaf([]string{name}))
		s.p.RenewCertificates()
		if got := shown(); got != name {
			t.Errorf("after it was written: %s, want %s", got, name)
		}
		certstest.Put(t, s.dir+"/a.crt", []byte("broken"))
		s.p.RenewCertificates()
		if got := shown(); got != name {
			t.Errorf("with a broken file: %s, want %s", got, name)
		}
		certstest.Write(t, s.dir, "a", s.ca.Leaf([]string{name + "-again"}))
		s.use(text)
		if got := shown(); got != name+"-again" {
			t.Errorf("after a reload: %s", got)
		}
	}
	stop.Store(true)
	clients.Wait()
	if a, _ := ask(t, kept, read, "/", "a"); a.StatusCode != 200 {
		t.Errorf("the kept connection: %d", a.StatusCode)
	}
	if asked.Load() == 0 {
		t.Error("nothing was asked meanwhile")
	}
}

func TestResumptionThroughProxy(t *testing.T) {
	s := newSecured(t, `server { listen PORT ssl; ssl_certificate DIR/a.crt; ssl_certificate_key DIR/a.key; location / { return 200 "$ssl_session_reused $ssl_protocol"; } }
server { listen PORT ssl; server_name off; ssl_session_tickets off; ssl_certificate DIR/off.crt; ssl_certificate_key DIR/off.key; location / { return 200 "$ssl_session_reused"; } }`, "a", "off")
	for name, want := range map[string]string{"a": ". TLSv1.3, r TLSv1.3", "off": "., ."} {
		cache := tls.NewLRUClientSessionCache(1)
		var got []string
		for range 2 {
			_, body, _ := s.fetch(name, name, "/", func(c *tls.Config) { c.ClientSessionCache = cache })
			got = append(got, body)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
	if _, body, _ := s.fetch("a", "a", "/", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }); body != ". TLSv1.2" {
		t.Error(body)
	}
}

// TestHTTP1OverTLS: pipelining, a large body both ways and an upgrade.
func TestHTTP1OverTLS(t *testing.T) {
	s := newSecured(t, `server { listen PORT ssl; ssl_certificate DIR/a.crt; ssl_certificate_key DIR/a.key; client_max_body_size 8m;
	location / { proxy_pass http://BACKEND; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $http_connection; proxy_set_header X-Scheme $scheme; } }`, "a")
	s.backed.srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = fmt.Fprintf(w, "%s %s ", r.Header.Get("X-Scheme"), r.URL.Path)
			_, _ = io.Copy(w, r.Body)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(c, "echo "+line)
	})
	c, err := s.dial("a")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	read := bufio.NewReader(c)
	_, _ = io.WriteString(c, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
	for _, want := range []string{"https /1 ", "https /2 "} {
		a, err := http.ReadResponse(read, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(a.Body); string(body) != want {
			t.Errorf("%q, want %q", body, want)
		}
	}
	large := strings.Repeat("0123456789abcdef", 1<<18)
	go func() {
		_, _ = fmt.Fprintf(c, "POST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(large), large)
	}()
	a, err := http.ReadResponse(read, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(a.Body); string(body) != "https /3 "+large || err != nil {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	_, _ = io.WriteString(c, "GET /4 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if a, err = http.ReadResponse(read, nil); err != nil || a.StatusCode != 101 {
		t.Fatal(a, err)
	}
	_, _ = io.WriteString(c, "hello\n")
	if line, err := read.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestHTTP2ByTLS: by ALPN where the server of the name says so.
func TestHTTP2ByTLS(t *testing.T) {
	s := newSecured(t, `server { listen PORT ssl; server_name on; http2 on; ssl_certificate DIR/on.crt; ssl_certificate_key DIR/on.key; location / { return 200 "$server_protocol $http2 $ssl_alpn_protocol"; } }
server { listen PORT ssl; server_name off; ssl_certificate DIR/off.crt; ssl_certificate_key DIR/off.key; location / { return 200 "$server_protocol $ssl_alpn_protocol"; } }`, "on", "off")
	for name, want := range map[string]string{"on": "HTTP/2.0 h2 h2", "off": "HTTP/1.1 http/1.1"} {
		tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{ServerName: name, RootCAs: s.ca.Pool()}}
		r, _ := http.NewRequest("GET", "https://"+s.addr+"/", nil)
		r.Host = name
		a, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(a.Body)
		_ = a.Body.Close()
		tr.CloseIdleConnections()
		if string(body) != want {
			t.Errorf("%s: %q, want %q", name, body, want)
		}
	}
}

// TestVariablesOfClients holds what is said of a client's certificate to what it is, and to nginx.
func TestVariablesOfClients(t *testing.T) {
	names := []string{"s_dn", "i_dn", "serial", "fingerprint", "v_start", "v_end", "v_remain", "verify", "escaped_cert"}
	var text []string
	for _, n := range names {
		text = append(text, "$ssl_client_"+n)
	}
	mine := certstest.New(t, "other").Sub("sub").Leaf([]string{"me"}, certstest.Subject(pkix.Name{CommonName: `Jürg, "x"+#`, Organization: []string{"a", "b"}, Country: []string{"CH"}, SerialNumber: "7"}))
	alone := *mine
	alone.Certificate = alone.Certificate[:1]
	var seen []string
	both(t, `server { listen PORT ssl; ssl_certificate DIR/a.crt; ssl_certificate_key DIR/a.key; ssl_verify_client optional_no_ca; ssl_verify_depth 3;
	location / { return 200 "`+strings.Join(text, "\n")+`"; }
	location /tls { return 200 "$ssl_protocol $ssl_cipher $ssl_server_name $ssl_session_reused $ssl_alpn_protocol|$ssl_early_data|$scheme"; }
	location /cert { proxy_pass http://BACKEND; proxy_set_header X-Cert $ssl_client_cert; } }`, []string{"a"},
		func(t *testing.T, s *secured) {
			s.backed.srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, strings.Join(strings.Fields(r.Header.Get("X-Cert")), ""))
			})
			_, sent, _ := s.fetch("a", "a", "/cert", shows(mine))
			if want := strings.Join(strings.Fields(certs.PEM(mine.Leaf)), ""); sent != want {
				t.Errorf("told to the backend: %q, want %q", sent, want)
			}
			_, body, _ := s.fetch("a", "a", "/", shows(mine))
			_, lone, _ := s.fetch("a", "a", "/", shows(&alone))
			_, none, _ := s.fetch("a", "a", "/")
			_, wire, _ := s.fetch("a", "a", "/tls", func(c *tls.Config) { c.MaxVersion, c.NextProtos = tls.VersionTLS12, []string{"http/1.1"} })
			all := strings.Join([]string{body, lone, none, wire}, "\n--\n")
			seen = append(seen, all)
			if len(seen) > 1 && seen[0] != all {
				t.Errorf("here:\n%s\nnginx:\n%s", seen[0], all)
			}
			if !strings.Contains(body, `CN=J\C3\BCrg\, \"x\"\+#`) || !strings.Contains(body, "-----BEGIN%20CERTIFICATE-----%0A") || strings.Contains(none, "CN") {
				t.Errorf("%s", all)
			}
		})
}
