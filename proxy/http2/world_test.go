package http2

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/front"
)

// handler is a function as forward.Handler.
type handler func(ctx context.Context, r *forward.Request, c forward.Client)

func (h handler) Handle(ctx context.Context, r *forward.Request, c forward.Client) { h(ctx, r, c) }

// field is a forward.Field of two texts.
func field(name, value string) forward.Field {
	return forward.Field{Name: []byte(name), Value: []byte(value)}
}

// say answers with a text of known length.
func say(c forward.Client, status int, text string) {
	if c.Head(status, []forward.Field{field("Content-Type", "text/plain")}, int64(len(text))) == nil && c.Write([]byte(text)) == nil {
		_ = c.End(nil)
	}
}

// door is a server behind a real listener.
type door struct {
	server *Server
	addr   string
	conns  sync.WaitGroup
}

func limitsForTests() front.Settings {
	return front.Settings{ClientHeader: 5 * time.Second, ClientBody: 5 * time.Second, ClientSend: 5 * time.Second, ClientIdle: 5 * time.Second, ClientMax: 64 << 10, Replay: 64 << 10, HTTP2: true}
}

// listen starts a server; over TLS with secure.
func listen(t *testing.T, s front.Settings, secure bool, h handler) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{server: NewServer(h, quiet), addr: l.Addr().String()}
	var config *tls.Config
	if secure {
		config = &tls.Config{Certificates: []tls.Certificate{certificate(t)}, NextProtos: []string{"h2"}}
	}
	d.conns.Go(func() {
		for number := uint64(1); ; number++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.conns.Go(func() { d.serve(c, config, front.ConnInfo{Number: number, Settings: s}) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		_ = d.server.Close()
		d.conns.Wait()
	})
	return d
}

func (d *door) serve(c net.Conn, config *tls.Config, info front.ConnInfo) {
	info.Remote, info.Local = addrPort(c.RemoteAddr()), addrPort(c.LocalAddr())
	if config != nil {
		secure := tls.Server(c, config)
		if err := secure.Handshake(); err != nil {
			_ = c.Close()
			return
		}
		state := secure.ConnectionState()
		c, info.TLS = secure, &state
	}
	d.server.ServeConn(c, info)
}

func addrPort(a net.Addr) netip.AddrPort { return a.(*net.TCPAddr).AddrPort() }

// certificate is for 127.0.0.1 and peer.example.
var certificate = func() func(t *testing.T) tls.Certificate {
	var once sync.Once
	var made tls.Certificate
	return func(t *testing.T) tls.Certificate {
		t.Helper()
		once.Do(func() {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			c := &x509.Certificate{
				SerialNumber: big.NewInt(1), DNSNames: []string{"peer.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
				NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
			}
			der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
			if err != nil {
				t.Fatal(err)
			}
			made = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
			made.Leaf, _ = x509.ParseCertificate(der)
		})
		return made
	}
}()

// roots trusts that certificate.
func roots(t *testing.T) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(certificate(t).Leaf)
	return pool
}

// client makes net/http's client, which speaks HTTP/2 alone.
func caller(t *testing.T, secure bool) *http.Client {
	t.Helper()
	p := new(http.Protocols)
	p.SetHTTP2(secure)
	p.SetUnencryptedHTTP2(!secure)
	tr := &http.Transport{Protocols: p, TLSClientConfig: &tls.Config{RootCAs: roots(t)}, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 10 * time.Second}
}

// within fails the test when f is not done in time.
func within(t *testing.T, d time.Duration, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

var quiet = log.New(io.Discard, "", 0)
