package proxy

import (
	"context"
	"net"
	"net/netip"

	"github.com/upstrand/upstrand/confgen/topology"
)

// addresses gives what stands behind names in server lines; package names has the network's.
type addresses interface {
	// Lookup is for names that are resolved when a file is read.
	Lookup(host string) ([]netip.Addr, error)
	// Query is for names that are resolved while it is in force: what is known by now. It does not wait.
	Query(q topology.Query) ([]topology.Answer, error)
}

// asked gives the answers of a function, at once, for both.
type asked struct {
	lookup func(host string) ([]netip.Addr, error)
}

func (a asked) Lookup(host string) ([]netip.Addr, error) { return a.lookup(host) }

func (a asked) Query(q topology.Query) ([]topology.Answer, error) {
	addrs, err := a.lookup(q.Host)
	answers := make([]topology.Answer, len(addrs))
	for i, addr := range addrs {
		answers[i].Addr = netip.AddrPortFrom(addr, 0)
	}
	return answers, err
}

// resolves tells why a host:port has no address; nil: it has one, or is one.
func (p *Proxy) resolves(host string) error {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return err
	}
	if net.ParseIP(name) != nil {
		return nil
	}
	_, err = p.names.Lookup(name)
	return err
}

// hostNow asks for the addresses of a name that a request has.
func (p *Proxy) hostNow(ctx context.Context, r topology.Resolver, host string) ([]netip.Addr, error) {
	if p.book != nil {
		return p.book.Host(ctx, r, host)
	}
	return p.names.Lookup(host)
}
