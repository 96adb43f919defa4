package site

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/upstrand/upstrand/confgen/dialect"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/upstrand"
)

// strolling is a quiet world with an upstrand of five upstreams, of which the last one asked answers 200, the others 503.
type strolling struct {
	*quiet
	walks    Upstrand
	statuses int // 503s to come
	left     int
}

func (s *strolling) Upstrand(string) *Upstrand   { return &s.walks }
func (s *strolling) Upstream(string) *Upstream   { return &s.up }
func (s *strolling) Opener(*Wire) forward.Opener { return s }
func (s *strolling) Open(ctx context.Context, p *balance.Peer, fresh bool) forward.Backend {
	s.engine.Open(ctx, p, fresh)
	return s
}

func (s *strolling) Send(*forward.Request) error { return nil }
func (s *strolling) Head() (int, []forward.Field, error) {
	if s.left--; s.left >= 0 {
		return 503, s.engine.fields, nil
	}
	return 200, s.engine.fields, nil
}
func (s *strolling) Body() forward.Source                { return s.engine.Body() }
func (s *strolling) Sent() forward.Progress              { return s.engine.Sent() }
func (s *strolling) Tunnel() (io.ReadWriteCloser, error) { return s.engine.Tunnel() }
func (s *strolling) Close()                              {}

func newStrolling(tb testing.TB, stops int) *strolling {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "test.conf")
	text := "http { server { listen 127.0.0.1:8080; location / { proxy_pass http://$upstrand_s; } } }"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	doc, _ := dialect.Read(name, dialect.Options{})
	compiled, faults := Compile(doc.Site, Options{Upstrands: func(string) bool { return true }})
	if len(faults) > 0 {
		tb.Fatal(faults)
	}
	s := &strolling{quiet: newQuiet(tb, proxiedShapes[0].conf), statuses: stops - 1}
	s.site = compiled
	s.walks = Upstrand{Name: "s", State: upstrand.NewState("s", upstrand.Env{})}
	spec := upstrand.Spec{}
	spec.Next, _, _ = upstrand.ParseStatuses([]string{"error", "5xx"})
	for i := range 5 {
		name := fmt.Sprint("u", i)
		g, err := balance.NewGroup(name, balance.Env{}, balance.Spec{Servers: []balance.Server{{Key: balance.Key{ID: name}, Addr: "127.0.0.1:1"}}})
		if err != nil {
			tb.Fatal(err)
		}
		up := &Upstream{Name: name, Group: g}
		spec.Members = append(spec.Members, upstrand.Member{Name: name, Group: g, Link: up})
	}
	s.walks.State.Swap(spec)
	return s
}

// BenchmarkWalk compares walks of so many stops with a plain upstream, whose target is a text with a variable, too.
func BenchmarkWalk(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		q := newQuiet(b, "server { listen 127.0.0.1:8080; set $to u; location / { proxy_pass http://$to; } }")
		r := plainRequest()
		b.ReportAllocs()
		for b.Loop() {
			q.site.Handle(context.Background(), q, r, deaf{})
		}
	})
	for _, stops := range []int{1, 2, 5} {
		b.Run(fmt.Sprint("stops=", stops), func(b *testing.B) {
			s := newStrolling(b, stops)
			r := plainRequest()
			b.ReportAllocs()
			for b.Loop() {
				s.left = s.statuses
				s.site.Handle(context.Background(), s, r, deaf{})
			}
		})
	}
}
