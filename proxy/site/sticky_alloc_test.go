package site

import (
	"context"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// TestStickyAllocations: neither a session in a cookie nor one that is learned costs an allocation, once it is known.
func TestStickyAllocations(t *testing.T) {
	if racing {
		t.Skip("the race detector makes pools forget")
	}
	for name, sticky := range map[string]*topology.Sticky{
		"cookie": {Kind: "cookie", Name: "srv", Expires: "1h", Domain: ".$host", Path: "/", HTTPOnly: true},
		"route":  {Kind: "route", Variables: []string{"$cookie_a", "$arg_r"}},
		"learn":  {Kind: "learn", Create: []string{"$upstream_http_x_a"}, Lookup: []string{"$cookie_a"}},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQuiet(t, proxiedShapes[0].conf)
			spec := &topology.Group{Name: "u", Sticky: sticky}
			site, faults := compileWith(t, proxiedShapes[0].conf, Options{
				Upstreams: func(string) bool { return true }, Groups: []*topology.Group{spec}})
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			q.site = site
			var servers []balance.Server
			for _, id := range []string{"a", "b", "c"} {
				servers = append(servers, balance.Server{Key: balance.Key{ID: id}, Addr: "10.0.0.1:80", Route: id})
			}
			group, err := balance.NewGroup("u", balance.Env{Clock: q.Now}, balance.Spec{Servers: servers,
				Sticky: balance.StickySpec{Kind: sticky.Kind, Timeout: time.Hour}})
			if err != nil {
				t.Fatal(err)
			}
			q.up = Upstream{Name: "u", Group: group, Spec: spec}
			r, c := plainRequest(), &collector{}
			q.site.Handle(context.Background(), q, r, c)
			if setCookie := forward.Get(c.fields, "Set-Cookie") != nil; c.status != 200 || setCookie != (name == "cookie") {
				t.Fatalf("%d, Set-Cookie: %v", c.status, setCookie)
			}
			if n := testing.AllocsPerRun(200, func() { q.site.Handle(context.Background(), q, r, deaf{}) }); n > 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}
