package site

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/script"
)

// ruleSetters are blocks that make variables by other rules than map's.
var ruleSetters = map[string]setter{"geo": setGeo, "split_clients": setSplitClients}

// geo is a block that gives addresses a value.
type geo struct {
	source    script.Func[*request] // of a text that is an address; nil: the client's
	ranged    bool
	networks  script.Networks[string]
	ranges    script.Ranges[string]
	otherwise string         // of ranges; networks hold theirs themselves
	proxies   realIPSettings // who is believed about whom it speaks for
	volatile  bool
}

// nowhereAddr is what nginx looks up where there is no address.
var nowhereAddr = netip.AddrFrom4([4]byte{255, 255, 255, 255})

const geoAllowed = "NETWORK VALUE, default VALUE, delete NETWORK, proxy NETWORK, proxy_recursive, volatile, or ranges before all others"

// setGeo reads geo [$ADDRESS] $NAME { … }.
func setGeo(l *level, n *topology.Node) {
	if !l.args(n, 1, 2) {
		return
	}
	g := &geo{proxies: realIPSettings{header: "X-Forwarded-For"}}
	for _, name := range n.Args {
		if !strings.HasPrefix(name, "$") {
			l.problem(n, "variable "+quote(name), "$name")
			return
		}
	}
	if len(n.Args) == 2 {
		g.source = l.script.Read(n, n.Args[0][1:])
	}
	for i, line := range n.Block {
		if err := g.line(line, i == 0); err != nil {
			l.problem(line, err.Error(), geoAllowed)
		}
	}
	if err := l.script.Define(n.Args[len(n.Args)-1][1:], !g.volatile, g.value); err != nil {
		l.problem(n, err.Error(), "a name of your own")
	}
}

// line reads one line of the block. What it adds is literal: values have no variables, as in nginx.
func (g *geo) line(n *topology.Node, first bool) error {
	if len(n.Args) == 0 {
		return g.flag(n.Name, first)
	}
	if len(n.Args) != 1 {
		return fmt.Errorf("has %d values", len(n.Args))
	}
	switch text := n.Args[0]; n.Name {
	case "default":
		g.otherwise = text
		if !g.ranged {
			g.networks.Set(netip.PrefixFrom(netip.IPv4Unspecified(), 0), text)
			g.networks.Set(netip.PrefixFrom(netip.IPv6Unspecified(), 0), text)
		}
		return nil
	case "proxy":
		net, err := parseNet(text)
		g.proxies.from = append(g.proxies.from, net)
		return err
	case "delete":
		return g.remove(text)
	default:
		return g.set(n.Name, text)
	}
}

func (g *geo) flag(name string, first bool) error {
	switch name {
	case "ranges":
		if !first {
			return fmt.Errorf("ranges must be the first line of the block")
		}
		g.ranged = true
	case "proxy_recursive":
		g.proxies.recursive = true
	case "volatile":
		g.volatile = true
	default:
		return fmt.Errorf("has no value")
	}
	return nil
}

func (g *geo) set(text, value string) error {
	if g.ranged {
		from, to, err := parseRange(text)
		if err != nil {
			return err
		}
		return g.ranges.Add(from, to, value)
	}
	net, err := parseNet(text)
	if err == nil {
		g.networks.Set(net, value)
	}
	return err
}

func (g *geo) remove(text string) error {
	if g.ranged {
		from, to, err := parseRange(text)
		if err != nil {
			return err
		}
		return g.ranges.Delete(from, to)
	}
	net, err := parseNet(text)
	if err == nil {
		g.networks.Delete(net)
	}
	return err
}

// parseRange reads ADDRESS-ADDRESS.
func parseRange(text string) (from, to netip.Addr, err error) {
	first, last, ok := strings.Cut(text, "-")
	if !ok {
		return from, to, fmt.Errorf("%q is no range such as 10.0.0.1-10.0.0.9", text)
	}
	if from, err = netip.ParseAddr(first); err == nil {
		to, err = netip.ParseAddr(last)
	}
	return from, to, err
}

// value is the variable.
func (g *geo) value(r *request) (string, bool) {
	a := r.remote
	if g.source != nil {
		text, _ := g.source(r)
		var err error
		if a, err = netip.ParseAddr(text); err != nil {
			a = nowhereAddr
		}
	}
	if len(g.proxies.from) > 0 {
		if told, _, ok := g.proxies.client(a, r.realIPText(&g.proxies)); ok {
			a = told
		}
	}
	if a = a.Unmap(); !g.ranged {
		v, _ := g.networks.Find(a)
		return v, true
	}
	if !a.Is4() {
		a = nowhereAddr
	}
	if v, ok := g.ranges.Find(a); ok {
		return v, true
	}
	return g.otherwise, true
}
