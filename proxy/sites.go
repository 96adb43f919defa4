package proxy

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// enter counts a request in with the site that is to serve it, so that one which was replaced is closed, with its logs, when
// its last request has ended. Nil: nobody serves it, and it was cut off.
func (p *Proxy) enter(t *table, r *forward.Request, c forward.Client) *table {
	for !t.users.enter() {
		next := p.table.Load()
		if next == t { // the proxy is shut down
			c.Abort()
			return nil
		}
		t = next
	}
	if !t.site.Takes(r.Local) && p.former.took(r.Local) {
		// The door that the client came in by is closed since: it must not meet the servers of another address.
		t.users.exit()
		c.Abort()
		return nil
	}
	return t
}

// again serves a request that a table has left since all upstreams that it knew are gone: by the site of now.
func (p *Proxy) again(ctx context.Context, t *table, r *forward.Request, c forward.Client, of *site.Served) {
	for {
		next := p.table.Load()
		switch {
		case next.site == nil || !next.site.Takes(r.Local): // it has changed again
			of.Here()
			t.site.Continue(ctx, t, r, c, of)
			return
		case next.users.enter():
			defer next.users.exit()
			if next.site.Continue(ctx, next, r, c, of); of.Again {
				p.again(ctx, next, r, c, of)
			}
			return
		case p.table.Load() == next: // the proxy is shut down
			of.Here()
			t.site.Continue(ctx, t, r, c, of)
			return
		}
	}
}

// Requests that went to no upstream of the file, and those that went to hosts which only they name, are counted together.
const (
	countedLocal = "(local)"
	countedHosts = "(hosts)"
)

// counted is whose metrics a request belongs to.
func (t *table) counted(upstream string) *service {
	if upstream == "" {
		return t.counts[countedLocal]
	}
	if s := t.counts[upstream]; s != nil {
		return s
	}
	return t.counts[countedHosts]
}

// users counts the requests that use a site.
type users struct {
	site *site.Site
	n    atomic.Int64 // requests, and one as long as the site is in force; below 1: closed
}

func newUsers(s *site.Site) *users {
	u := &users{site: s}
	u.n.Store(1)
	return u
}

// enter counts a request in. It is false when the site is closed: then the table of now has another one.
func (u *users) enter() bool {
	for {
		n := u.n.Load()
		if n < 1 {
			return false
		}
		if u.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// exit counts a request out.
func (u *users) exit() {
	if u.n.Add(-1) == 0 {
		u.site.Close()
	}
}

// leave is for the site's going out of force.
func (u *users) leave() { u.exit() }

// Group is the group of an upstream in force; nil: there is none. For those who look at it, such as explain.
func (p *Proxy) Group(name string) *balance.Group {
	if e := p.entry(name); e != nil {
		return e.group
	}
	return nil
}

// Spec is what an upstream in force was built from; nil: there is none. It must not be changed.
func (p *Proxy) Spec(name string) *topology.Group {
	if e := p.entry(name); e != nil {
		return e.from
	}
	return nil
}

func (p *Proxy) entry(name string) *entry {
	if t := p.table.Load(); t != nil {
		return t.groups[name]
	}
	return nil
}

// Upstreams is the names of those in force, in their order: the file's, then published ones.
func (p *Proxy) Upstreams() []string {
	if t := p.table.Load(); t != nil {
		return t.order
	}
	return nil
}

// Upstream is site.Env's: the group of a name, which has no case, or of a host that a proxy_pass names, as host:port. A
// host that only the request names is found here too.
func (t *table) Upstream(name string) *site.Upstream {
	e := t.names[name]
	if e == nil {
		e = t.names[strings.ToLower(name)]
	}
	if e == nil {
		return t.proxy.hosts.of(name, t.file.file.Resolver)
	}
	return &e.upstream
}

// Renew is site.Renewer's.
func (t *table) Renew(u *site.Upstream) *site.Upstream {
	now := t.proxy.table.Load()
	if e := now.groups[u.Name]; e != nil && e.group != u.Group {
		return &e.upstream
	}
	return nil
}

// Newer is site.Renewer's.
func (t *table) Newer(local netip.AddrPort) bool {
	now := t.proxy.table.Load()
	return now != t && now.site != nil && now.site.Takes(local)
}

// addHosts lets hosts that a proxy_pass names be published upstreams. What is neither that nor a host is a problem; its
// requests get 502.
func (t *table) addHosts(c *Compiled) {
	for _, host := range c.site.Hosts() {
		name, _, _ := net.SplitHostPort(host)
		key := strings.ToLower(host)
		if e := t.names[strings.ToLower(name)]; e != nil {
			t.names[key] = e
		}
		if t.names[key] == nil {
			t.problems = append(t.problems, topology.Problem{
				Where: "proxy_pass to " + host, Reason: "neither a published upstream nor a host with an address", Upstream: -1, Upstrand: -1, Line: -1,
			})
		}
	}
}

// Now is site.Env's.
func (t *table) Now() int64 { return t.proxy.clock() }

// Clock is site.Clocked's.
func (t *table) Clock() balance.Clock { return t.proxy.clock }

// Connections is site.Counter's.
func (t *table) Connections() site.Connections {
	s := t.proxy.servers.stats()
	return site.Connections{
		Active: s.Active, Accepts: int64(s.Accepts), Handled: int64(s.Handled), Requests: int64(s.Requests),
		Reading: s.Reading, Writing: s.Writing, Waiting: s.Waiting,
	}
}
