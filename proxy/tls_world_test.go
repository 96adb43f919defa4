package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// secured is a proxy that serves a file over TLS.
type secured struct {
	*world
	ca     *certstest.Authority
	dir    string
	addr   string
	door   Door
	backed *backend
}

// newSecured serves a file in which PORT, DIR and BACKEND stand for those of the test. DIR has ca.pem and, for each name,
// NAME.crt and NAME.key.
func newSecured(t *testing.T, text string, names ...string) *secured {
	t.Helper()
	s := &secured{world: newWorld(t, nil), ca: certstest.New(t, "ca"), dir: t.TempDir()}
	certstest.Put(t, filepath.Join(s.dir, "ca.pem"), s.ca.PEM())
	for _, name := range names {
		s.issue(name)
	}
	s.backed = newBackend(t, "b", nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.use(text)
	served := make(chan error, 1)
	s.door = Door{Addr: netip.MustParseAddrPort(s.addr), TLS: true, HTTP2: true, Limits: s.p.table.Load().site.Client(netip.MustParseAddrPort(s.addr))}
	go func() { served <- s.p.ServeDoor(l, s.door) }()
	t.Cleanup(func() { _ = l.Close(); <-served })
	return s
}

// issue writes a certificate that has the name.
func (s *secured) issue(name string, opts ...certstest.Option) *tls.Certificate {
	c := s.ca.Leaf([]string{name}, opts...)
	certstest.Write(s.t, s.dir, name, c)
	return c
}

func (s *secured) use(text string) { s.t.Helper(); s.mustLoad(false, s.filled(text)) }

func (s *secured) filled(text string) string {
	_, port, _ := net.SplitHostPort(s.addr)
	return strings.NewReplacer("PORT", port, "DIR", s.dir, "BACKEND", s.backed.addr()).Replace(text)
}

// both calls f for our proxy and, with UPSTRAND_NGINX=PATH, for an nginx that serves the same file.
func both(t *testing.T, text string, names []string, f func(t *testing.T, s *secured)) {
	t.Helper()
	s := newSecured(t, text, names...)
	f(t, s)
	path := os.Getenv("UPSTRAND_NGINX")
	if path == "" {
		return
	}
	t.Run("nginx", func(t *testing.T) {
		other := *s
		other.world = &world{t: t}
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		other.addr = free.Addr().String()
		_ = free.Close()
		dir := t.TempDir()
		whole := fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;\nevents {}\nhttp {\naccess_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/w; scgi_temp_path %[1]s/s;\n%[2]s\n}\n", dir, other.filled(text))
		certstest.Put(t, filepath.Join(dir, "nginx.conf"), []byte(whole))
		cmd := exec.Command(path, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		eventually(t, "nginx listens", func() bool {
			c, err := net.Dial("tcp", other.addr)
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		})
		f(t, &other)
	})
}

// dial makes a handshake in which a name is said.
func (s *secured) dial(name string, change ...func(*tls.Config)) (*tls.Conn, error) {
	conf := &tls.Config{ServerName: name, RootCAs: s.ca.Pool()}
	for _, f := range change {
		f(conf)
	}
	if name == "" {
		conf.InsecureSkipVerify = true
	}
	return tls.Dial("tcp", s.addr, conf)
}

// ask sends one request over a connection and reads the answer.
func ask(t *testing.T, c net.Conn, r *bufio.Reader, target, host string) (*http.Response, string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, host); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, string(text)
}

// fetch is a connection with one request.
func (s *secured) fetch(name, host, target string, change ...func(*tls.Config)) (status int, body string, peer string) {
	s.t.Helper()
	c, err := s.dial(name, change...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	a, text := ask(s.t, c, bufio.NewReader(c), target, host)
	return a.StatusCode, text, c.ConnectionState().PeerCertificates[0].DNSNames[0]
}

func shows(c *tls.Certificate) func(*tls.Config) {
	if c == nil {
		c = new(tls.Certificate)
	}
	return func(conf *tls.Config) {
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }
	}
}
