package http1

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// numbered is an address that answers each request with the number of its connection.
func numbered(t *testing.T) string {
	conns := make(chan int, 1)
	conns <- 0
	return listen(t, func(c net.Conn) {
		n := <-conns + 1
		conns <- n
		for readRequest(c) != "" {
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"+string(rune('a'+n-1))); err != nil {
				return
			}
		}
	})
}

func must(t *testing.T, o forward.Opener, p *balance.Peer, r *forward.Request) string {
	t.Helper()
	body, err := take(t.Context(), o, p, r)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestKeepalive is nginx's settings, one after another.
func TestKeepalive(t *testing.T) {
	for _, tc := range []struct {
		name   string
		k      topology.Keepalive
		change func(*conn) // of the first connection, after the first request
		want   string      // connections of four requests
	}{
		{"default", topology.UnsetKeepalive, nil, "aaaa"},
		{"off", topology.Keepalive{Idle: 0}, nil, "abcd"},
		{"two requests", topology.Keepalive{Idle: 1, Requests: 2}, nil, "aabb"},
		{"young enough", topology.Keepalive{Idle: 1, Time: time.Hour}, func(c *conn) { c.born -= int64(59 * time.Minute) }, "aaaa"},
		{"too old", topology.Keepalive{Idle: 1, Time: time.Hour}, func(c *conn) { c.born -= int64(time.Hour) }, "aabb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			ps.Keepalive("u", tc.k)
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: numbered(t), Upstream: "u"})
			got := ""
			for i := range 4 {
				got += must(t, ps, p, get())
				if i == 0 && tc.change != nil {
					tc.change(onlyConn(p.Link.(*Pool)))
				}
			}
			if got != tc.want {
				t.Errorf("connections %s, want %s", got, tc.want)
			}
		})
	}
}

// held begins a request whose connection stays in use until its body is read.
func held(t *testing.T, o forward.Opener, p *balance.Peer) forward.Backend {
	t.Helper()
	b := o.Open(t.Context(), p, false)
	if _, _, err := exchanged(b, get()); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestIdleOfAnUpstream: the limit is for all servers of it, and the one that waited longest goes.
func TestIdleOfAnUpstream(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	ps.Keepalive("u", topology.Keepalive{Idle: 2})
	var peers []*balance.Peer
	for _, name := range []string{"a", "b", "c"} {
		p, _ := peerAt(t, ps, PoolKey{Server: name, Scheme: "http", Addr: numbered(t), Upstream: "u"})
		peers = append(peers, p)
	}
	idle := func() (n [3]int) {
		for i, p := range peers {
			n[i] = len(p.Link.(*Pool).idle)
		}
		return n
	}
	for _, p := range peers {
		must(t, ps, p, get())
	}
	if got := idle(); got != [3]int{0, 1, 1} {
		t.Errorf("after one request to each: %v", got)
	}
	must(t, ps, peers[1], get()) // b is now the one used last
	must(t, ps, peers[0], get())
	if got := idle(); got != [3]int{1, 1, 0} {
		t.Errorf("c waited longest: %v", got)
	}
	b1, b2 := held(t, ps, peers[1]), held(t, ps, peers[1])
	for _, b := range []forward.Backend{b1, b2} {
		if _, err := io.ReadAll(readerOf{b.Body()}); err != nil {
			t.Fatal(err)
		}
		b.Close()
	}
	if got := idle(); got != [3]int{0, 2, 0} {
		t.Errorf("two of b: %v", got)
	}
	ps.Keepalive("u", topology.Keepalive{Idle: 1})
	if got := idle(); got != [3]int{0, 1, 0} || peers[1].Link.(*Pool).open() != 1 {
		t.Errorf("a smaller limit: %v", got)
	}
	other, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: numbered(t)})
	for range 2 {
		must(t, ps, other, get())
	}
	if got := idle(); got != [3]int{0, 1, 0} {
		t.Errorf("connections outside of it count too: %v", got)
	}
}

// TestSweep closes what waited too long and what the peer closed.
func TestSweep(t *testing.T) {
	ps := NewPools(Settings{Idle: time.Minute}, nil)
	defer ps.Close()
	end := make(chan struct{})
	addr := listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-end
	})
	good, _ := peerAt(t, ps, PoolKey{Server: "good", Scheme: "http", Addr: numbered(t)})
	old, _ := peerAt(t, ps, PoolKey{Server: "old", Scheme: "http", Addr: numbered(t)})
	dead, _ := peerAt(t, ps, PoolKey{Server: "dead", Scheme: "http", Addr: addr})
	for _, p := range []*balance.Peer{good, old, dead} {
		must(t, ps, p, get())
	}
	ago := func(p *balance.Peer, d time.Duration) *conn {
		pool := p.Link.(*Pool)
		pool.shelf.mu.Lock()
		defer pool.shelf.mu.Unlock()
		pool.idle[0].idleSince = moment() - int64(d)
		return pool.idle[0]
	}
	close(end)
	ago(good, 50*time.Second)
	ago(old, 70*time.Second)
	arrived(t, ago(dead, 2*time.Second))
	ps.sweeper.sweep()
	for name, p := range map[string]*balance.Peer{"good": good, "old": old, "dead": dead} {
		if n := p.Link.(*Pool).open(); (n == 1) != (name == "good") {
			t.Errorf("%s: %d connections", name, n)
		}
	}
	if n := len(ps.sweeper.shelves); n != 1 {
		t.Errorf("%d shelves are looked at", n)
	}
	ago(good, 70*time.Second)
	ps.sweeper.sweep()
	if n := len(ps.sweeper.shelves); n != 0 || good.Link.(*Pool).open() != 0 {
		t.Errorf("%d shelves are looked at", n)
	}
	must(t, ps, good, get())
	if n := len(ps.sweeper.shelves); n != 1 {
		t.Errorf("a new connection is not looked at: %d", n)
	}
}

// TestWiresShareConnections that speak alike, and no others.
func TestWiresShareConnections(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: numbered(t)})
	keep := get()
	keep.Fields = fields("Connection", "keep-alive")
	slow := ps.Opener(Wire{Read: time.Hour, Connect: time.Hour, HeadMax: 1 << 20})
	old := ps.Opener(Wire{HTTP10: true})
	for i, tc := range []struct {
		o    forward.Opener
		r    *forward.Request
		want string
	}{{ps, get(), "a"}, {slow, get(), "a"}, {old, keep, "a"}, {old, get(), "a"}, {ps, get(), "b"}, {ps.Opener(Wire{Scheme: "http", ServerName: "x"}), get(), "b"}} {
		if got := must(t, tc.o, p, tc.r); got != tc.want {
			t.Errorf("%d: connection %s, want %s", i, got, tc.want)
		}
	}
}

func TestTLSWires(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.ServerName+" "+r.RemoteAddr)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	trusting := s.Client().Transport.(*http.Transport).TLSClientConfig
	blind := &tls.Config{InsecureSkipVerify: true}
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: s.Listener.Addr().String()}) // the location says https
	seen := map[string]string{}
	for _, tc := range []struct {
		wire    Wire
		name    string // as the peer sees it; !: refused
		sharing string
	}{
		{Wire{Scheme: "https"}, "!", ""},
		{Wire{Scheme: "https", TLS: trusting}, "", "trusting"},
		{Wire{Scheme: "https", TLS: trusting, Read: time.Hour}, "", "trusting"},
		{Wire{Scheme: "https", TLS: trusting, ServerName: "example.com"}, "example.com", "named"},
		{Wire{Scheme: "https", TLS: trusting, ServerName: "other.org"}, "!", ""},
		{Wire{Scheme: "https", TLS: blind, ServerName: "other.org"}, "other.org", "blind"},
		{Wire{Scheme: "https", TLS: trusting}, "", "trusting"},
		{Wire{Scheme: "https", TLS: blind, ServerName: "other.org"}, "other.org", "blind"},
	} {
		got, err := take(t.Context(), ps.Opener(tc.wire), p, get())
		if tc.name == "!" {
			if err == nil || classOf(t, err) != forward.OnError {
				t.Errorf("%+v: %q, %v", tc.wire, got, err)
			}
			continue
		}
		name, conn, _ := strings.Cut(got, " ")
		if err != nil || name != tc.name {
			t.Errorf("%+v: %q, %v", tc.wire, got, err)
		}
		if seen[tc.sharing] == "" {
			seen[tc.sharing] = conn
		}
		if seen[tc.sharing] != conn {
			t.Errorf("%s: connection %s, want %s", tc.sharing, conn, seen[tc.sharing])
		}
	}
	if seen["trusting"] == seen["named"] || seen["named"] == seen["blind"] {
		t.Errorf("shared: %v", seen)
	}
}

// TestFresh uses no kept connection.
func TestFresh(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: numbered(t)})
	must(t, ps, p, get())
	b := ps.Open(context.Background(), p, true)
	defer b.Close()
	if _, _, err := exchanged(b, get()); err != nil || b.Sent().Kept || b.Sent().Connect == 0 {
		t.Errorf("%v, %+v", err, b.Sent())
	}
	if all, _ := io.ReadAll(readerOf{b.Body()}); string(all) != "b" {
		t.Errorf("connection %s", all)
	}
}
