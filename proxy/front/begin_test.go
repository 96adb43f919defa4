package front

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// certificate is a self-signed one.
func certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"shop"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func withTLS(t testing.TB, protos ...string) func(*Options) {
	c := &tls.Config{Certificates: []tls.Certificate{certificate(t)}, NextProtos: protos}
	return func(o *Options) { o.TLS = func(netip.AddrPort) *tls.Config { return c } }
}

func shakeHands(t testing.TB, c net.Conn, protos ...string) *tls.Conn {
	t.Helper()
	secure := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: protos})
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	return secure
}

// TestTLS: requests, bodies and tunnels are as on a plain connection.
func TestTLS(t *testing.T) {
	states := make(chan *tls.ConnectionState, 3)
	srv, addr := serve(t, Settings{TLS: true}, func(_ context.Context, r *forward.Request, c forward.Client) {
		states <- r.TLS
		if !r.Secure {
			t.Error("not secure")
		}
		if r.Body == nil {
			plain(context.Background(), r, c)
			return
		}
		n, err := io.Copy(io.Discard, r.Body)
		_ = c.Head(200, nil, 1<<20)
		_ = c.Write(make([]byte, 1<<20-3))
		_ = c.Write([]byte(fmt.Sprint(n, err)[:3]))
		_ = c.End(nil)
	}, withTLS(t))
	c := shakeHands(t, dial(t, addr))
	say(t, c, get+get)
	got := hear(t, c, "GET /\n")
	if !strings.HasSuffix(got, "GET /\n") || strings.Count(got, "GET /\n") < 2 {
		hear(t, c, "GET /\n")
	}
	say(t, c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\nConnection: close\r\n\r\n"+strings.Repeat("a", 300000))
	if got := gone(t, c); !strings.HasSuffix(got, "\x00300") {
		t.Errorf("%d bytes, %.200q", len(got), got)
	}
	if a, b, c := <-states, <-states, <-states; a == nil || a != b || a != c {
		t.Errorf("states %p, %p, %p", a, b, c)
	}
	eventually(t, "it is over", func() bool { return srv.Stats().Active == 0 })
}

// TestPlainAtATLSDoor: such a request is for the handler to refuse. What is neither is closed.
func TestPlainAtATLSDoor(t *testing.T) {
	_, addr := serve(t, Settings{TLS: true, HTTP2: true, ClientHeader: 100 * time.Millisecond}, func(_ context.Context, r *forward.Request, c forward.Client) {
		if r.Secure || r.TLS != nil {
			t.Error("secure")
		}
		plain(context.Background(), r, c)
	}, withTLS(t))
	c := dial(t, addr)
	say(t, c, get)
	hear(t, c, "GET /\n")
	for _, text := range []string{"", "\x16\x03", "\x16\x03\x01\x00\x05hello"} {
		c := dial(t, addr)
		say(t, c, text)
		if got, _ := io.ReadAll(c); strings.Contains(string(got), "HTTP") {
			t.Errorf("%q got %q", text, got)
		}
	}
}

// TestPanicInAHandshake ends its connection and nothing else.
func TestPanicInAHandshake(t *testing.T) {
	srv, addr := serve(t, Settings{TLS: true}, plain, func(o *Options) { o.TLS = func(netip.AddrPort) *tls.Config { panic("a bug") } })
	for range 2 {
		c := dial(t, addr)
		say(t, c, "\x16\x03\x01")
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Errorf("%q", got)
		}
	}
	eventually(t, "both are over", func() bool { return srv.Stats().Active == 0 })
}

// TestProxied: a header of the PROXY protocol is told with each request; without one a connection is closed.
func TestProxied(t *testing.T) {
	const header = "PROXY TCP4 10.0.0.1 10.0.0.2 1234 80\r\n"
	for _, secure := range []bool{false, true} {
		_, addr := serve(t, Settings{ProxyProtocol: true, TLS: secure, ClientHeader: 200 * time.Millisecond}, func(_ context.Context, r *forward.Request, c forward.Client) {
			if r.Proxy == nil || r.Proxy.Source.String() != "10.0.0.1:1234" || r.Remote.String() != "127.0.0.1" {
				t.Errorf("%+v", r.Proxy)
			}
			plain(context.Background(), r, c)
		}, withTLS(t))
		for _, step := range []int{1000, 5} {
			c := dial(t, addr)
			text := header
			if !secure {
				text += get + get
			}
			for len(text) > 0 {
				n := min(step, len(text))
				say(t, c, text[:n])
				text = text[n:]
			}
			var nc net.Conn = c
			if secure {
				nc = shakeHands(t, c)
				say(t, nc, get+get)
			}
			if got := hear(t, nc, "GET /\n"); strings.Count(got, "GET /\n") == 1 {
				hear(t, nc, "GET /\n")
			}
		}
		for _, text := range []string{get, "PROXY TCP4 10.0.0.1", ""} {
			c := dial(t, addr)
			say(t, c, text)
			if got, _ := io.ReadAll(c); len(got) > 0 {
				t.Errorf("%q got %q", text, got)
			}
		}
	}
}

// second is somebody who speaks HTTP/2.
type second struct{ got chan string }

func (s second) ServeConn(c net.Conn, info ConnInfo) {
	defer c.Close()
	b := make([]byte, 100)
	n, _ := io.ReadAtLeast(c, b, len(clientPreface)+3)
	s.got <- fmt.Sprintf("%s %v %v %d", b[:n], info.TLS != nil, info.Remote.Addr(), info.Settings.ClientIdle)
	_, _ = io.WriteString(c, "bye")
}

// TestHandOver: who begins with the preface, or chose h2, speaks to somebody else from its first byte on.
func TestHandOver(t *testing.T) {
	s := second{make(chan string, 1)}
	http2 := func(o *Options) { o.HTTP2 = s }
	want := func(secure bool) string {
		return fmt.Sprintf("%sabc %v 127.0.0.1 %d", clientPreface, secure, 75*time.Second)
	}
	srv, addr := serve(t, Settings{HTTP2: true}, plain, http2)
	for _, step := range []int{1000, 1} {
		c := dial(t, addr)
		for text := clientPreface + "abc"; len(text) > 0; {
			n := min(step, len(text))
			say(t, c, text[:n])
			text = text[n:]
		}
		if got := <-s.got; got != want(false) {
			t.Errorf("%q", got)
		}
		if got := gone(t, c); got != "bye" {
			t.Errorf("%q", got)
		}
	}
	c := dial(t, addr) // the same door speaks HTTP/1.1
	say(t, c, "PRINT / HTTP/1.1\r\nHost: a\r\n\r\n")
	hear(t, c, "PRINT /\n")
	eventually(t, "those are over", func() bool { return srv.Stats().Active == 1 })

	_, addr = serve(t, Settings{TLS: true, HTTP2: true}, plain, http2, withTLS(t, "h2", "http/1.1"))
	secure := shakeHands(t, dial(t, addr), "h2")
	say(t, secure, clientPreface+"abc")
	if got := <-s.got; got != want(true) {
		t.Errorf("%q", got)
	}
	secure = shakeHands(t, dial(t, addr), "http/1.1")
	say(t, secure, get)
	hear(t, secure, "GET /\n")
}

// clumsy panics with every connection.
type clumsy struct{}

func (clumsy) ServeConn(net.Conn, ConnInfo) { panic("HTTP/2") }

// TestPanicOfAnother: a connection that was handed over is closed when that goes wrong.
func TestPanicOfAnother(t *testing.T) {
	srv, addr := serve(t, Settings{HTTP2: true}, plain, func(o *Options) { o.HTTP2 = clumsy{} })
	c := dial(t, addr)
	say(t, c, clientPreface)
	if got := gone(t, c); got != "" {
		t.Errorf("%q", got)
	}
	eventually(t, "it is gone", func() bool { return srv.Stats().Active == 0 })
}

// keeper keeps what it is given until it is told to let go.
type keeper chan struct{}

func (k keeper) ServeConn(c net.Conn, _ ConnInfo) {
	_, _ = io.WriteString(c, "mine")
	<-k
	_ = c.Close()
}

// TestHandedOverIsCounted: a connection takes its place for as long as somebody else speaks on it.
func TestHandedOverIsCounted(t *testing.T) {
	for name, s := range map[string]Settings{"in all": {Conns: 1}, "of an address": {ConnsPerAddress: 1}} {
		for _, secure := range []bool{false, true} {
			s.HTTP2, s.TLS = true, secure
			k := make(keeper)
			begin := func(c net.Conn) net.Conn {
				if secure {
					return shakeHands(t, c, "h2")
				}
				say(t, c, clientPreface)
				return c
			}
			srv, addr := serve(t, s, plain, func(o *Options) { o.HTTP2 = k }, withTLS(t, "h2"))
			hear(t, begin(dial(t, addr)), "mine")
			if got, _ := io.ReadAll(dial(t, addr)); len(got) > 0 {
				t.Errorf("%s, TLS %v: one more got %q", name, secure, got)
			}
			k <- struct{}{}
			eventually(t, "there is room", func() bool {
				srv.mu.Lock()
				defer srv.mu.Unlock()
				return len(srv.conns) == 0 && len(srv.perClient) == 0
			})
			hear(t, begin(dial(t, addr)), "mine")
			close(k)
		}
	}
}
