package http2

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// peerAt is a peer whose pool is held.
func peerAt(t *testing.T, ps *Pools, scheme, addr string) (*balance.Peer, *balance.Group) {
	t.Helper()
	key := Key{Server: "a", Scheme: scheme, Addr: addr}
	g, err := balance.NewGroup("u", balance.Env{}, balance.Spec{Servers: []balance.Server{{Key: balance.Key{ID: key.Server}, Addr: addr, Scheme: scheme}}})
	if err != nil {
		t.Fatal(err)
	}
	p := g.Peers()[0]
	p.Link = ps.Acquire(key)
	return p, g
}

func newPools(t *testing.T, s PeerSettings) *Pools {
	t.Helper()
	ps := NewPools(s, &tls.Config{RootCAs: roots(t)})
	t.Cleanup(ps.Close)
	return ps
}

// backend is a peer that net/http serves; it counts connections.
type backend struct {
	addr  string
	mu    sync.Mutex
	conns int
}

func serve(t *testing.T, secure bool, h http.HandlerFunc) *backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{addr: l.Addr().String()}
	p := new(http.Protocols)
	p.SetHTTP2(secure)
	p.SetUnencryptedHTTP2(!secure)
	srv := &http.Server{Handler: h, ErrorLog: quiet, DisableGeneralOptionsHandler: true, Protocols: p, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			b.mu.Lock()
			b.conns++
			b.mu.Unlock()
		}
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if secure {
			srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
			_ = srv.ServeTLS(l, "", "")
			return
		}
		_ = srv.Serve(l)
	}()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return b
}

func (b *backend) opened() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conns
}

// speak starts a peer that answers frame by frame; play is run for each connection after the preface and settings.
func speak(t *testing.T, play func(r *raw)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	over := make(chan struct{})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { <-over; _ = c.Close() })
			all.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				r := &raw{t: t, conn: c, fr: http2.NewFramer(c, c)}
				r.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
				r.enc = hpack.NewEncoder(&r.buf)
				if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil || r.fr.WriteSettings() != nil {
					return
				}
				play(r)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); close(over); all.Wait() })
	return l.Addr().String()
}

// asked reads up to the next request, and gives its stream; 0 at the end.
func (r *raw) asked() uint32 {
	for {
		f, err := r.fr.ReadFrame()
		if err != nil {
			return 0
		}
		if h, ok := f.(*http2.MetaHeadersFrame); ok {
			return h.StreamID
		}
	}
}

// drain reads until the connection ends.
func (r *raw) drain() {
	for f := r.next(); f != "closed" && f != "nothing"; f = r.next() {
	}
}

func want(target string) *forward.Request {
	return &forward.Request{Method: []byte("GET"), Authority: []byte("a.example"), Target: []byte(target)}
}

// text is a body that can be sent again.
type text struct {
	strings.Reader
	trailer []forward.Field
}

func newText(s string, trailer ...forward.Field) *text {
	return &text{Reader: *strings.NewReader(s), trailer: trailer}
}
func (b *text) Trailer() []forward.Field { return b.trailer }
func (b *text) Rewind() error            { _, err := b.Seek(0, io.SeekStart); return err }
func (b *text) Rewindable() bool         { return true }

// stuck is a body that does not come.
type stuck struct{ reading chan struct{} }

func (b *stuck) ReadUntil(_ []byte, stop <-chan struct{}) (int, error) {
	close(b.reading)
	<-stop
	return 0, errors.New("stopped")
}
func (b *stuck) Read(p []byte) (int, error) { return b.ReadUntil(p, nil) }
func (b *stuck) Trailer() []forward.Field   { return nil }
func (b *stuck) Rewind() error              { return nil }
func (b *stuck) Rewindable() bool           { return true }

// got is an answer as text: status, fields, body and trailer.
func got(b forward.Backend, r *forward.Request) (string, error) {
	var out bytes.Buffer
	if err := b.Send(r); err != nil {
		return "", err
	}
	for {
		status, fields, err := b.Head()
		if err != nil {
			return out.String(), err
		}
		out.WriteString(http.StatusText(status))
		write(&out, fields)
		if status >= 200 {
			break
		}
	}
	body, err := io.ReadAll(readerOf{b.Body()})
	out.WriteString(" " + string(body))
	write(&out, b.Body().Trailer())
	return out.String(), err
}

func write(out *bytes.Buffer, fields []forward.Field) {
	for _, f := range fields {
		if n := string(f.Name); n != "Date" && n != "Content-Length" && n != "Content-Type" {
			out.WriteString(" [" + n + ": " + string(f.Value) + "]")
		}
	}
}

type readerOf struct{ s forward.Source }

func (r readerOf) Read(p []byte) (int, error) { return r.s.Read(p) }

func classOf(t *testing.T, err error) forward.Class {
	t.Helper()
	var e *forward.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *forward.Error", err)
	}
	return e.Class
}

// one makes one exchange.
func one(ctx context.Context, o forward.Opener, p *balance.Peer, r *forward.Request) (string, error) {
	b := o.Open(ctx, p, false)
	defer b.Close()
	return got(b, r)
}
