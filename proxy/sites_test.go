package proxy

import (
	"context"
	"errors"
	"testing"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// replacing is a peer that refuses, and at the first attempt all peers are replaced by others, which are real.
type replacing struct {
	forward.Opener
	replace func()
	asked   int
}

func (o *replacing) Open(ctx context.Context, p *balance.Peer, fresh bool) forward.Backend {
	if o.asked++; o.asked > 1 {
		return o.Opener.Open(ctx, p, fresh)
	}
	o.replace()
	return refusing{&shiftingPeer{}}
}

type refusing struct{ *shiftingPeer }

func (refusing) Send(*forward.Request) error {
	return &forward.Error{Class: forward.OnError, Err: errors.New("refused")}
}

// TestAFileFollowsReplacedInstances: a request of a file's that began when all instances were others goes on with those of
// now, as one of a published route does, and tells of real attempts only.
func TestAFileFollowsReplacedInstances(t *testing.T) {
	for name, tc := range map[string]struct {
		after  []string // instances that are there after the first attempt
		status int
		body   string
	}{
		"others came": {[]string{"c"}, 200, "c"},
		"one stays":   {[]string{"b", "c"}, 200, "b"},
		"none came":   {nil, 502, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &replacing{}
			w := newWorld(t, func(c *Config) { c.Opener = func(site.Wire) forward.Opener { return o } })
			o.Opener = w.p.pools
			backends := map[string]*backend{}
			set := func(ids ...string) {
				w.services["orders"] = nil
				for _, id := range ids {
					if backends[id] == nil {
						backends[id] = newBackend(t, id, nil)
					}
					in := instance(id, backends[id].addr())
					in.Order = int64(id[0])
					w.services["orders"] = append(w.services["orders"], in)
				}
				w.apply()
			}
			w.paths["/orders"] = "orders"
			set("a", "b")
			w.mustLoad(true, `server { listen 8080; add_header X-Addr $upstream_addr always; location / { proxy_pass http://orders; } }`)
			o.replace = func() { set(tc.after...) }
			got := w.get("/")
			if got.status != tc.status || tc.status == 200 && got.body != tc.body {
				t.Errorf("%d %s", got.status, got.body)
			}
			want := backends["a"].addr() + ", orders"
			if tc.status == 200 {
				want = backends["a"].addr() + ", " + backends[tc.body].addr()
			}
			if addr := got.header.Get("X-Addr"); addr != want {
				t.Errorf("tries %q, want %q", addr, want)
			}
		})
	}
}
