package http1

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// secured is a TLS server with a peer for it.
func secured(t *testing.T, h http.HandlerFunc, state func(net.Conn, http.ConnState)) (*Pools, *balance.Peer) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = state
	s.StartTLS()
	t.Cleanup(s.Close)
	ps := NewPools(Settings{}, s.Client().Transport.(*http.Transport).TLSClientConfig)
	t.Cleanup(ps.Close)
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "https", Addr: s.Listener.Addr().String()})
	return ps, p
}

func TestBodiesOverTLS(t *testing.T) {
	ps, p := secured(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	}, nil)
	large := strings.Repeat("0123456789", 30_000)
	for i, tc := range []struct {
		body   *text
		length int64
		want   string
	}{
		{body("abc"), 3, "abc"}, {body("abc"), -1, "abc"}, {body(large), int64(len(large)), large}, {body(large), -1, large},
		{&text{Reader: strings.NewReader("abc"), waits: true}, 3, "abc"},
	} {
		b := ps.Open(t.Context(), p, false)
		if _, _, err := exchanged(b, post(tc.body, tc.length)); err != nil || b.Sent().Kept != (i > 0) {
			t.Fatalf("%d: %v, %+v", i, err, b.Sent())
		}
		if got, err := io.ReadAll(readerOf{b.Body()}); string(got) != tc.want || err != nil {
			t.Errorf("%d: %d bytes, %v", i, len(got), err)
		}
		b.Close()
	}
	b := ps.Open(t.Context(), p, false)
	_, _, err := exchanged(b, post(&text{Reader: strings.NewReader("ab"), err: errors.New("gone")}, 3))
	if classOf(t, err) != forward.ClientBody {
		t.Errorf("%v", err)
	}
	b.Close()
	if n := p.Link.(*Pool).open(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

// TestStaleOverTLS: that a kept connection was closed, also in order, is found out before it is written to, or proven.
func TestStaleOverTLS(t *testing.T) {
	for name, crossing := range map[string]bool{"before": false, "on the wire": true} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan net.Conn, 1)
			ps, p := secured(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") },
				func(c net.Conn, state http.ConnState) {
					if state == http.StateIdle {
						select {
						case closed <- c:
						default:
						}
					}
				})
			b := ps.Open(t.Context(), p, false)
			if _, _, err := exchanged(b, get()); err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(readerOf{b.Body()})
			b.Close()
			c := onlyConn(p.Link.(*Pool))
			end := func() { _ = (<-closed).Close(); arrived(t, c) }
			if crossing {
				ps.crossing = func() { ps.crossing = nil; end() }
			} else {
				end()
			}
			b = ps.Open(t.Context(), p, false)
			defer b.Close()
			post := get()
			post.Method = []byte("POST")
			_, _, err := exchanged(b, post)
			if !crossing && (err != nil || b.Sent().Kept) {
				t.Errorf("%v, %+v", err, b.Sent())
			}
			if got := b.Sent(); crossing && (err == nil || !got.Kept || !got.Unread) {
				t.Errorf("%v, %+v", err, got)
			}
		})
	}
}

// TestNoOtherProtocol is spoken, whatever the configuration offers.
func TestNoOtherProtocol(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	ps := NewPools(Settings{}, config)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "https", Addr: s.Listener.Addr().String()})
	if got, err := take(t.Context(), ps, p, get()); got != "HTTP/1.1" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
