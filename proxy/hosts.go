package proxy

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/http1"
	"github.com/upstrand/upstrand/proxy/site"
)

const (
	mostHosts = 1024            // kept at once
	hostHolds = 5 * time.Second // an answer without valid=, and that there was none
)

// hosts is the upstreams of hosts that only a request names, in a proxy_pass with variables: addresses, and names where
// the file has a resolver. They live beside the tables.
type hosts struct {
	proxy *Proxy
	ctx   context.Context // of all questions; ended by the proxy's end
	end   context.CancelFunc

	mu  sync.Mutex
	all map[string]*host
}

// host is one of them, by host:port.
type host struct {
	name  string
	ready chan struct{} // closed when the first answer has come

	mu      sync.Mutex
	current *entry    // nil: it has no address
	until   time.Time // then it is asked for again; zero: never
	asking  bool
	dropped bool // it is in hosts no more, and gets no peers
}

// of is the upstream of host:port; nil: there is none. The first request for a name waits for the answer; later ones
// are served by the last one while it is asked for again.
func (hs *hosts) of(name string, resolver *topology.Resolver) *site.Upstream {
	text, _, err := net.SplitHostPort(name)
	if err != nil || resolver == nil && net.ParseIP(text) == nil {
		return nil
	}
	for range 3 { // what others drop meanwhile is begun anew, but not for ever
		h, fresh := hs.take(name)
		if fresh {
			hs.ask(h, resolver)
			close(h.ready)
		}
		select {
		case <-h.ready:
		case <-hs.ctx.Done():
			return nil
		}
		if up, stale := hs.now(h, resolver); !stale {
			return up
		}
		hs.forget(h)
	}
	return nil
}

// now is what is known of a host. It is stale when it was dropped, or had no address and it is time to ask again.
func (hs *hosts) now(h *host, resolver *topology.Resolver) (up *site.Upstream, stale bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := !h.until.IsZero() && time.Now().After(h.until)
	switch {
	case h.dropped, h.current == nil && due:
		return nil, true
	case h.current == nil:
		return nil, false
	case due && !h.asking:
		h.asking = true
		go hs.ask(h, resolver)
	}
	return &h.current.upstream, false
}

// forget begins a host anew with the next request for it.
func (hs *hosts) forget(h *host) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.all[h.name] == h {
		delete(hs.all, h.name)
	}
}

// take finds a host or begins one. Beyond the limit another one goes.
func (hs *hosts) take(name string) (h *host, fresh bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.all[name]; h != nil {
		return h, false
	}
	if len(hs.all) >= mostHosts {
		for other, old := range hs.all {
			delete(hs.all, other)
			go hs.drop(old)
			break
		}
	}
	name = strings.Clone(name) // it is text of the request
	h = &host{name: name, ready: make(chan struct{}), asking: true}
	hs.all[name] = h
	return h, true
}

// ask finds the addresses of now and puts them in force.
func (hs *hosts) ask(h *host, resolver *topology.Resolver) {
	servers, literal := hs.servers(h.name, resolver)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asking = false
	if !literal {
		h.until = time.Now().Add(hostHolds)
		if resolver.Valid > 0 {
			h.until = time.Now().Add(resolver.Valid)
		}
	}
	if len(servers) == 0 || h.dropped {
		return // the last good ones stay
	}
	h.current = hs.entry(h.name, h.current, balance.Spec{Servers: servers})
}

func (hs *hosts) servers(name string, resolver *topology.Resolver) (out []balance.Server, literal bool) {
	text, port, _ := net.SplitHostPort(name)
	var addrs []netip.Addr
	if a, err := netip.ParseAddr(text); err == nil {
		addrs, literal = []netip.Addr{a}, true
	} else if addrs, err = hs.proxy.hostNow(hs.ctx, *resolver, text); err != nil {
		hs.proxy.log.Warn().Err(err).Str("host", text).Msg("a host of proxy_pass can't be resolved")
	}
	for _, a := range addrs {
		addr := net.JoinHostPort(a.String(), port)
		out = append(out, balance.Server{
			Key: balance.Key{ID: name, Addr: addr}, Addr: addr, Weight: 1, MaxFails: 1, FailTimeout: 10 * time.Second, Text: name,
		})
	}
	return out, literal
}

// entry is the group with these servers; nil keeps what was before, which only a mistake of ours leads to.
func (hs *hosts) entry(name string, before *entry, spec balance.Spec) *entry {
	p, from := hs.proxy, &topology.Group{Name: name, Origin: topology.Declared, Keepalive: topology.UnsetKeepalive}
	if before == nil {
		group, err := balance.NewGroup(name, balance.Env{Clock: p.clock, Rand: p.config.Rand, Watch: p.config.Watch}, spec)
		if err != nil {
			return nil
		}
		hs.link(group.Peers())
		return newEntry(from, group)
	}
	change, err := before.group.Prepare(spec)
	if err != nil || change == nil {
		return before
	}
	hs.link(change.Joined)
	balance.Swap([]*balance.Change{change}, func() {})
	hs.release(change.Left)
	return newEntry(from, change.Next)
}

func (hs *hosts) link(peers []*balance.Peer) {
	for _, peer := range peers {
		peer.Link = hs.proxy.link(http1.PoolKey{Server: peer.ID(), Scheme: peer.Scheme(), Addr: peer.Addr()})
	}
}

func (hs *hosts) release(peers []*balance.Peer) {
	for _, peer := range peers {
		hs.proxy.unlink(peer)
	}
}

// drop lets a host go; requests that have its peers end in the pools' drain time.
func (hs *hosts) drop(h *host) {
	select {
	case <-h.ready:
	case <-hs.ctx.Done():
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped = true
	if h.current != nil {
		change := h.current.group.Removal()
		balance.Swap([]*balance.Change{change}, func() {})
		hs.release(change.Left)
		h.current = nil
	}
}
