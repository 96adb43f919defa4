package http2

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// serve1 is a TLS server that speaks HTTP/1.1 alone.
func serve1(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t)}, NextProtos: []string{"http/1.1"}}
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TestOneConnectionForAll: requests at the same time share one; the first ones wait for it to be opened.
func TestOneConnectionForAll(t *testing.T) {
	var now, most atomic.Int32
	all := make(chan struct{})
	peer := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		if most.Store(now.Add(1)); now.Load() == 50 {
			close(all)
		}
		<-all
	})
	ps := newPools(t, PeerSettings{})
	p, _ := peerAt(t, ps, "http", peer.addr)
	var done sync.WaitGroup
	for range 50 {
		done.Go(func() {
			if _, err := one(t.Context(), ps.Opener(Wire{}), p, want("/")); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if n := peer.opened(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestNoRoomOnAConnection: when a peer takes no more streams on one, another is opened.
func TestNoRoomOnAConnection(t *testing.T) {
	var conns atomic.Int32
	addr := speak(t, func(r *raw) {
		conns.Add(1)
		_ = r.fr.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
		for id := r.asked(); id != 0; id = r.asked() {
			_ = r.headers(id, false, ":status", "200") // an answer that does not end
		}
	})
	ps := newPools(t, PeerSettings{})
	p, _ := peerAt(t, ps, "http", addr)
	var open []forward.Backend
	for range 3 {
		b := ps.Opener(Wire{}).Open(t.Context(), p, false)
		open = append(open, b)
		if err := b.Send(want("/")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Head(); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
	for _, b := range open {
		b.Close()
	}
}

// TestGone: with the last holder, or the peer, gone no request begins, unused connections close at once, and one that is
// used closes when its request ends or the drain time does.
func TestGone(t *testing.T) {
	for name, leave := range map[string]func(*Pools, *balance.Peer, *balance.Group){
		"pool": func(ps *Pools, p *balance.Peer, _ *balance.Group) { ps.Release(p.Link.(*Pool)) },
		"peer": func(ps *Pools, p *balance.Peer, g *balance.Group) {
			balance.Swap([]*balance.Change{g.Removal()}, func() {})
			ps.Release(p.Link.(*Pool))
		},
	} {
		t.Run(name, func(t *testing.T) {
			goOn := make(chan struct{})
			peer := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				if r.URL.Path == "/slow" {
					<-goOn
				}
			})
			ps := newPools(t, PeerSettings{Drain: time.Minute})
			p, g := peerAt(t, ps, "http", peer.addr)
			pool := p.Link.(*Pool)
			slow := ps.Opener(Wire{}).Open(t.Context(), p, false)
			_ = slow.Send(want("/slow"))
			if _, _, err := slow.Head(); err != nil {
				t.Fatal(err)
			}
			fresh := ps.Opener(Wire{}).Open(t.Context(), p, true)
			if _, err := got(fresh, want("/")); err != nil {
				t.Fatal(err)
			}
			fresh.Close()
			if pool.open() != 2 {
				t.Fatalf("%d connections", pool.open())
			}
			leave(ps, p, g)
			within(t, 5*time.Second, "the unused one closes", func() bool { return pool.open() == 1 && ps.Busy() == 1 })
			if _, err := one(t.Context(), ps.Opener(Wire{}), p, want("/")); classOf(t, err) != forward.PeerGone {
				t.Error(err)
			}
			close(goOn)
			if rest, err := io.ReadAll(readerOf{slow.Body()}); err != nil || len(rest) != 0 {
				t.Errorf("%q, %v", rest, err)
			}
			slow.Close()
			within(t, 5*time.Second, "the other one closes", func() bool { return pool.open() == 0 })
		})
	}
}

// TestDrain: what still runs when the time is over is cut.
func TestDrain(t *testing.T) {
	seen := make(chan string, 1)
	ps := newPools(t, PeerSettings{Drain: 50 * time.Millisecond})
	p, _ := peerAt(t, ps, "http", speak(t, func(r *raw) {
		_ = r.headers(r.asked(), false, ":status", "200")
		seen <- r.next()
		r.drain()
	}))
	b := ps.Opener(Wire{}).Open(t.Context(), p, false)
	defer b.Close()
	_ = b.Send(want("/"))
	if _, _, err := b.Head(); err != nil {
		t.Fatal(err)
	}
	ps.Release(p.Link.(*Pool))
	if _, err := io.ReadAll(readerOf{b.Body()}); err == nil {
		t.Error("no error")
	}
	if got := <-seen; got != "RST 1 CANCEL" {
		t.Errorf("the peer saw %s", got)
	}
	b.Close()
	within(t, 5*time.Second, "it is forgotten", func() bool { return ps.Busy() == 0 })
}

// TestKept: how often and how long a connection is used.
func TestKept(t *testing.T) {
	for name, tc := range map[string]struct {
		keep  topology.Keepalive
		conns int // for three requests, one after another
		left  int
	}{
		"by default":  {topology.UnsetKeepalive, 1, 1},
		"not at all":  {topology.Keepalive{}, 3, 0},
		"two at most": {topology.Keepalive{Idle: 1, Requests: 2}, 2, 1},
		"for a while": {topology.Keepalive{Idle: 1, Timeout: 30 * time.Millisecond}, 1, 0},
		"not so old":  {topology.Keepalive{Idle: 1, Time: time.Nanosecond}, 3, -1},
	} {
		t.Run(name, func(t *testing.T) {
			peer := serve(t, false, func(http.ResponseWriter, *http.Request) {})
			ps := newPools(t, PeerSettings{})
			ps.Keepalive("", tc.keep)
			p, _ := peerAt(t, ps, "http", peer.addr)
			for range 3 {
				if _, err := one(t.Context(), ps.Opener(Wire{}), p, want("/")); err != nil {
					t.Fatal(err)
				}
				if tc.keep.Idle == 0 {
					within(t, 5*time.Second, "it closes", func() bool { return p.Link.(*Pool).open() == 0 })
				}
			}
			if n := peer.opened(); n != tc.conns {
				t.Errorf("%d connections", n)
			}
			if tc.left >= 0 {
				within(t, 5*time.Second, "the right number is left", func() bool { return p.Link.(*Pool).open() == tc.left })
			}
		})
	}
}

// TestSlowPeerIsLeft: a connection on which a request timed out carries no new ones.
func TestSlowPeerIsLeft(t *testing.T) {
	var conns atomic.Int32
	addr := speak(t, func(r *raw) {
		if conns.Add(1) == 1 {
			r.drain()
			return
		}
		for id := r.asked(); id != 0; id = r.asked() {
			_ = r.headers(id, true, ":status", "200")
		}
	})
	ps := newPools(t, PeerSettings{})
	p, _ := peerAt(t, ps, "http", addr)
	o := ps.Opener(Wire{Read: 50 * time.Millisecond})
	if _, err := one(t.Context(), o, p, want("/")); classOf(t, err) != forward.OnTimeout {
		t.Error(err)
	}
	if _, err := one(t.Context(), o, p, want("/")); err != nil || conns.Load() != 2 {
		t.Errorf("%v, %d connections", err, conns.Load())
	}
}

// TestPeerTakesNothing: a body that a peer opens no window for is not waited with for longer than the limit.
func TestPeerTakesNothing(t *testing.T) {
	addr := speak(t, func(r *raw) {
		_ = r.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		r.drain()
	})
	ps := newPools(t, PeerSettings{})
	p, _ := peerAt(t, ps, "http", addr)
	r := want("/")
	r.Body, r.Length = newText(string(make([]byte, 100<<10))), 100<<10
	if _, err := one(t.Context(), ps.Opener(Wire{Send: 80 * time.Millisecond}), p, r); classOf(t, err) != forward.OnTimeout {
		t.Error(err)
	}
}

// TestGoAwayInBetween: a peer that says farewell ends what it began, and the next request goes over another connection.
func TestGoAwayInBetween(t *testing.T) {
	addr := speak(t, func(r *raw) {
		id := r.asked()
		_ = r.headers(id, false, ":status", "200")
		_ = r.fr.WriteGoAway(id, http2.ErrCodeNo, nil)
		time.Sleep(50 * time.Millisecond)
		_ = r.fr.WriteData(id, false, []byte("all of "))
		time.Sleep(10 * time.Millisecond)
		_ = r.fr.WriteData(id, true, []byte("it"))
		r.drain()
	})
	ps := newPools(t, PeerSettings{})
	p, _ := peerAt(t, ps, "http", addr)
	for range 2 {
		if text, err := one(t.Context(), ps.Opener(Wire{}), p, want("/")); text != "OK all of it" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
	within(t, 5*time.Second, "both connections close", func() bool { return p.Link.(*Pool).open() == 0 })
}
