package balance

import (
	"strings"
	"testing"
	"time"
)

// still is a clock that stands at a moment.
func still() Clock { return func() int64 { return time.Unix(1_800_000_000, 0).UnixNano() } }

// server is one of weight w with nginx's defaults.
func server(id string, w int) Server {
	return Server{Key: Key{ID: id}, Addr: id + ":80", Incarnation: 1, Weight: w, MaxFails: 1, FailTimeout: 10 * time.Second}
}

func group(t testing.TB, spec Spec, env Env) *Group {
	t.Helper()
	g, err := NewGroup("u", env, spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// upstream is a group of servers on a clock that stands.
func upstream(t testing.TB, servers ...Server) *Group {
	t.Helper()
	return group(t, Spec{Servers: servers}, Env{Clock: still()})
}

// next swaps the group's servers.
func (g *Group) next(t testing.TB, servers ...Server) *Group {
	t.Helper()
	spec := g.spec
	spec.Servers = servers
	c, err := g.Prepare(spec)
	if err != nil {
		t.Fatal(err)
	}
	if c == nil {
		return g
	}
	Swap([]*Change{c}, func() {})
	return c.Next
}

// picks makes n requests that all succeed and gives the ids.
func picks(t testing.TB, g *Group, n int) string {
	t.Helper()
	var ids strings.Builder
	for range n {
		p := g.Begin(NoLimit, nil)
		peer, why := p.Pick()
		if peer == nil {
			t.Fatalf("nobody to give: %v", why)
		}
		ids.WriteString(peer.ID())
		p.End(Succeeded)
	}
	return ids.String()
}
