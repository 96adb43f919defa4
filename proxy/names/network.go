package names

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/upstrand/upstrand/confgen/topology"
)

// network asks the system's resolver, or the name servers that a resolver directive names.
type network struct{}

func (network) Host(ctx context.Context, r topology.Resolver, host string) ([]netip.Addr, error) {
	kind := "ip"
	switch {
	case r.NoIPv6:
		kind = "ip4"
	case r.NoIPv4:
		kind = "ip6"
	}
	addrs, err := resolver(r).LookupNetIP(ctx, kind, host)
	if err != nil {
		return nil, err
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	if len(r.Servers) == 0 {
		addrs = usable(addrs)
	}
	return addrs, nil
}

// usable leaves IPv6 addresses out where this host has no IPv6 but on its loopback, unless there are no others: what
// getaddrinfo's AI_ADDRCONFIG does for nginx.
func usable(addrs []netip.Addr) []netip.Addr {
	var v4 []netip.Addr
	for _, a := range addrs {
		if a.Is4() {
			v4 = append(v4, a)
		}
	}
	if len(v4) == 0 || len(v4) == len(addrs) || speaksIPv6() {
		return addrs
	}
	return v4
}

func speaksIPv6() bool {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() == nil && n.IP.IsGlobalUnicast() {
			return true
		}
	}
	return false
}

func (n network) Service(ctx context.Context, r topology.Resolver, service, host string) ([]topology.Answer, error) {
	kind, proto := service, "tcp"
	if strings.Contains(service, ".") {
		kind, proto, host = "", "", service+"."+host
	}
	_, records, err := resolver(r).LookupSRV(ctx, kind, proto, host)
	if err != nil {
		return nil, err
	}
	var out []topology.Answer
	for _, srv := range records { // sorted by priority
		addrs, err := n.Host(ctx, r, strings.TrimSuffix(srv.Target, "."))
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			out = append(out, topology.Answer{
				Addr: netip.AddrPortFrom(a, srv.Port), Weight: max(int(srv.Weight), 1), Backup: srv.Priority > records[0].Priority,
			})
		}
	}
	return out, nil
}

var turn atomic.Uint32

// resolver is Go's, pointed at those name servers in turn.
func resolver(r topology.Resolver) *net.Resolver {
	if len(r.Servers) == 0 {
		return net.DefaultResolver
	}
	servers := make([]string, len(r.Servers))
	for i, s := range r.Servers {
		if _, _, err := net.SplitHostPort(s); err != nil {
			s = net.JoinHostPort(strings.Trim(s, "[]"), "53")
		}
		servers[i] = s
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, servers[int(turn.Add(1))%len(servers)])
	}}
}
