package site

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

// coreOnly is a site with many locations whose handlers do nothing, so that only the way to them is measured.
func coreOnly(t testing.TB) *world {
	var b strings.Builder
	b.WriteString("server { listen 127.0.0.1:8080; server_name a.example *.b.example; location / { proxy_pass http://u; } location = /exact { proxy_pass http://u; }\n")
	for i := range 100 {
		fmt.Fprintf(&b, "location /service%d/ { proxy_pass http://u; }\n", i)
	}
	b.WriteString("location /set/ { set $x $arg_a; if ($http_x_none) { return 403; } proxy_pass http://u; } }")
	w := newWorld(t, b.String())
	w.site.first.otherwise.inner.each(func(l *location) {
		l.set.handler = func(*request, context.Context) outcome { return outcome{} }
	})
	return w
}

// TestTheWayToALocationAllocatesNothing holds for plain locations and for set and if of single variables.
func TestTheWayToALocationAllocatesNothing(t *testing.T) {
	w := coreOnly(t)
	c := &collector{}
	for _, ask := range []string{"GET /", "GET /exact?x=y", "GET /service57/a/b/c", "GET /set/?a=b", "GET /x a.example", "GET /x deep.down.b.example"} {
		r := requestOf(ask)
		if n := testing.AllocsPerRun(200, func() { serveOnly(w, r, c) }); n > 0 {
			t.Errorf("%s: %v allocations", ask, n)
		}
	}
}

// serveOnly is Handle without the log.
func serveOnly(w *world, in *forward.Request, c forward.Client) {
	r := takeRequest(w.site, w, in, c, 0)
	r.serve(context.Background())
	r.release()
}

func BenchmarkWayToLocation(b *testing.B) {
	w := coreOnly(b)
	c := &collector{}
	for _, ask := range []string{"GET /service57/a/b/c", "GET /set/?a=b", "GET /%78/../service57//a"} {
		r := requestOf(ask)
		b.Run(ask[4:], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				serveOnly(w, r, c)
			}
		})
	}
}
