package http1

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// peerAt is a peer at an address, with its pool.
func peerAt(t testing.TB, ps *Pools, key PoolKey) (*balance.Peer, *balance.Group) {
	t.Helper()
	g, err := balance.NewGroup("u", balance.Env{}, balance.Spec{Servers: []balance.Server{{Key: balance.Key{ID: key.Server}, Addr: key.Addr, Scheme: key.Scheme}}})
	if err != nil {
		t.Fatal(err)
	}
	p := g.Peers()[0]
	p.Link = ps.Acquire(key)
	return p, g
}

func get() *forward.Request {
	return &forward.Request{Method: []byte("GET"), Authority: []byte("shop"), Target: []byte("/")}
}

// exchanged sends r and reads the final head.
func exchanged(b forward.Backend, r *forward.Request) (int, []forward.Field, error) {
	if err := b.Send(r); err != nil {
		return 0, nil, err
	}
	for {
		status, fields, err := b.Head()
		if err != nil || status >= 200 || status == 101 || status == forward.Headless {
			return status, fields, err
		}
	}
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func classOf(t testing.TB, err error) forward.Class {
	t.Helper()
	var e *forward.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *forward.Error", err)
	}
	return e.Class
}

func TestPoolsAreSharedUntilTheLastHolder(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	key := PoolKey{Server: "orders/a", Scheme: "http", Addr: "127.0.0.1:1"}
	a, b := ps.Acquire(key), ps.Acquire(key)
	other := key
	other.Incarnation = 2
	if a != b || ps.Acquire(other) == a {
		t.Fatal("one process, one pool")
	}
	ps.Release(a)
	if a.gone.Load() {
		t.Fatal("gone while somebody holds it")
	}
	ps.Release(b)
	if !a.gone.Load() || ps.Acquire(key) == a {
		t.Fatal("gone for good with its last holder")
	}
}

// TestGonePeerIsNotReached: whoever was given the peer before it left sends nothing to it.
func TestGonePeerIsNotReached(t *testing.T) {
	reached := false
	s := serve(t, func(http.ResponseWriter, *http.Request) { reached = true })
	for name, leave := range map[string]func(*Pools, *balance.Peer, *balance.Group){
		"pool": func(ps *Pools, p *balance.Peer, _ *balance.Group) { ps.Release(p.Link.(*Pool)) },
		"peer": func(_ *Pools, _ *balance.Peer, g *balance.Group) {
			balance.Swap([]*balance.Change{g.Removal()}, func() {})
		},
	} {
		ps := NewPools(Settings{}, nil)
		p, g := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: s.Listener.Addr().String()})
		b := ps.Open(t.Context(), p, false)
		leave(ps, p, g)
		if got := classOf(t, b.Send(get())); got != forward.PeerGone || b.Sent().Sent || reached {
			t.Errorf("%s: %v, %+v, reached %v", name, got, b.Sent(), reached)
		}
		b.Close()
		ps.Close()
	}
}

// TestPeerThatLeavesDuringTheHandshake: the connection was there before it left, and still nothing is sent.
func TestPeerThatLeavesDuringTheHandshake(t *testing.T) {
	for name, leave := range map[string]func(*Pools, *balance.Peer, *balance.Group){
		"pool": func(ps *Pools, p *balance.Peer, _ *balance.Group) { ps.Release(p.Link.(*Pool)) },
		"peer": func(_ *Pools, _ *balance.Peer, g *balance.Group) {
			balance.Swap([]*balance.Change{g.Removal()}, func() {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var reached atomic.Bool
			shake := make(chan func(), 1)
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
			s.Config.ErrorLog = log.New(io.Discard, "", 0) // complains when the connection is reset
			s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				(<-shake)()
				return nil, nil
			}}
			s.StartTLS()
			defer s.Close()
			ps := NewPools(Settings{}, s.Client().Transport.(*http.Transport).TLSClientConfig)
			defer ps.Close()
			p, g := peerAt(t, ps, PoolKey{Server: "a", Scheme: "https", Addr: s.Listener.Addr().String()})
			shake <- func() { leave(ps, p, g) }
			b := ps.Open(t.Context(), p, false)
			defer b.Close()
			post := get()
			post.Method = []byte("POST")
			err := b.Send(post)
			if reached.Load() {
				t.Fatal("the peer was reached")
			}
			if got := classOf(t, err); got != forward.PeerGone || b.Sent().Sent {
				t.Errorf("%v (%v), %+v", got, err, b.Sent())
			}
		})
	}
}

// TestClasses is what each way to fail is called, and whether something was sent.
func TestClasses(t *testing.T) {
	speak := func(answer string) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, answer)
		}
	}
	for _, tc := range []struct {
		name  string
		speak func(net.Conn)
		class forward.Class
		sent  bool
	}{
		{"refused", nil, forward.OnError, false},
		{"closed", speak(""), forward.OnError, true},
		{"closed within the head", speak("HTTP/1.1 200 OK\r\nA: b\r\n"), forward.OnError, true},
		{"no HTTP", speak("hello\r\n\r\n"), forward.OnInvalidHeader, true},
		{"bad field", speak("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), forward.OnInvalidHeader, true},
		{"head too large", speak("HTTP/1.1 200 OK\r\nA: " + string(make([]byte, 4096)) + "\r\n\r\n"), forward.OnInvalidHeader, true},
		{"status below 100", speak("HTTP/1.1 042 X\r\nContent-Length: 0\r\n\r\n"), forward.OnInvalidHeader, true},
		{"silent", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, forward.OnTimeout, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ps := NewPools(Settings{Read: 60 * time.Millisecond, HeadMax: 1024}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: listen(t, tc.speak)})
			b := ps.Open(t.Context(), p, false)
			defer b.Close()
			_, _, err := exchanged(b, get())
			if got := classOf(t, err); got != tc.class || b.Sent().Sent != tc.sent || b.Sent().Unread {
				t.Errorf("%v (%v), %+v; want %v, sent %v", got, err, b.Sent(), tc.class, tc.sent)
			}
		})
	}
}

// TestUnsendableRequest: what must not be sent is not the peer's fault, which is not even connected to.
func TestUnsendableRequest(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: listen(t, nil)})
	r := get()
	r.Fields = []forward.Field{{Name: []byte("a b"), Value: []byte("c")}}
	b := ps.Open(t.Context(), p, false)
	defer b.Close()
	if err := b.Send(r); classOf(t, err) != forward.BadRequest || b.Sent().Sent {
		t.Errorf("%v, %+v", err, b.Sent())
	}
}

// listen is an address where each connection is spoken to; nil: nothing listens, and the port stays taken: it is that of
// a connection's near end.
func listen(t testing.TB, speak func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if speak == nil {
		t.Cleanup(func() { _ = l.Close() })
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
		c, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c.LocalAddr().String()
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { defer c.Close(); speak(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

// TestReleaseWithARunningAnswer: a peer that left ends what it has begun, until the drain time is over.
func TestReleaseWithARunningAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		drain time.Duration
		ends  bool // the answer, before the drain time
	}{"ends in time": {time.Minute, true}, "is cut": {30 * time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				select {
				case <-release:
					_, _ = io.WriteString(w, "whole")
				case <-r.Context().Done():
				}
			})
			ps := NewPools(Settings{Drain: tc.drain}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: s.Listener.Addr().String()})
			b := ps.Open(t.Context(), p, false)
			defer b.Close()
			if _, _, err := exchanged(b, get()); err != nil {
				t.Fatal(err)
			}
			ps.Release(p.Link.(*Pool))
			if tc.ends {
				close(release)
			}
			body, err := io.ReadAll(readerOf{b.Body()})
			if whole := string(body) == "whole" && err == nil; whole != tc.ends {
				t.Errorf("%q, %v", body, err)
			}
		})
	}
}

type readerOf struct{ forward.Source }

func TestTLSPeer(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // complains about the handshake that fails
	s.StartTLS()
	defer s.Close()
	key := PoolKey{Server: "a", Scheme: "https", Addr: s.Listener.Addr().String()}
	for _, trusted := range []bool{false, true} {
		ps := NewPools(Settings{}, nil)
		if trusted {
			ps = NewPools(Settings{}, s.Client().Transport.(*http.Transport).TLSClientConfig)
		}
		p, _ := peerAt(t, ps, key)
		b := ps.Open(t.Context(), p, false)
		_, _, err := exchanged(b, get())
		if trusted && err != nil {
			t.Fatal(err)
		}
		if !trusted && (classOf(t, err) != forward.OnError || b.Sent().Sent) {
			t.Errorf("an unknown certificate: %v, %+v", err, b.Sent())
		}
		if trusted {
			if body, err := io.ReadAll(readerOf{b.Body()}); string(body) != "shop" || err != nil {
				t.Errorf("%q, %v", body, err)
			}
		}
		b.Close()
		ps.Close()
	}
}
