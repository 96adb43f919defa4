package site

import (
	"net/netip"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/forward"
)

// realIPSettings says which clients are proxies that are believed about whom they speak for.
type realIPSettings struct {
	from      []netip.Prefix // empty: nobody is
	header    string
	recursive bool
}

func (s *realIPSettings) trusts(a netip.Addr) bool {
	a = a.Unmap()
	for _, net := range s.from {
		if net.Contains(a) {
			return true
		}
	}
	return false
}

func setRealIPFrom(l *level, n *topology.Node) {
	if !l.args(n, 1, 1) {
		return
	}
	s := &l.settings().access.realIP
	if l.first(n.Name) {
		s.from = nil
	}
	text := n.Args[0]
	if text == "unix:" {
		return // no client comes over such a socket
	}
	if net, err := parseNet(text); err == nil {
		s.from = append(s.from, net)
		return
	}
	if l.options.Lookup == nil || strings.ContainsAny(text, "/: ") {
		l.problem(n, quote(text), "an address, a network such as 10.0.0.0/8, a host's name, or unix:")
		return
	}
	addrs, err := l.options.Lookup(text)
	if err != nil {
		l.problem(n, err.Error(), "a name that can be looked up")
		return
	}
	for _, a := range addrs {
		a = a.Unmap()
		s.from = append(s.from, netip.PrefixFrom(a, a.BitLen()))
	}
}

func setRealIPHeader(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	l.settings().access.realIP.header = n.Args[0]
}

// realIP replaces the client's address by the one that a trusted proxy tells. It is asked when the server is known and
// again in the location; the first time that it finds one is the last.
func (r *request) realIP() {
	s := &r.conf.access.realIP
	if r.real || !s.trusts(r.in.Remote) {
		return
	}
	if s.header == "proxy_protocol" {
		if p := r.in.Proxy; p != nil && p.Source.IsValid() {
			r.real = true
			r.remote, r.remotePort = p.Source.Addr(), p.Source.Port()
		}
		return
	}
	value := r.realIPText(s)
	if value == "" {
		return
	}
	if a, port, ok := s.client(r.in.Remote, value); ok {
		r.real = true
		r.remote, r.remotePort = a, port
	}
}

// realIPText is what the trusted proxy says; of X-Forwarded-For all fields, of others the first one.
func (r *request) realIPText(s *realIPSettings) string {
	if strings.EqualFold(s.header, "X-Forwarded-For") {
		v, _ := fieldNamed(r.in.Fields, "x_forwarded_for", ",")
		return v
	}
	return textOf(forward.Get(r.in.Fields, s.header))
}

// client reads the list from its end: the last address, or with recursive the last that is no trusted proxy itself.
func (s *realIPSettings) client(from netip.Addr, list string) (a netip.Addr, port uint16, ok bool) {
	for list != "" && s.trusts(from) {
		list = strings.TrimRight(list, ", ")
		item := list
		if i := strings.LastIndexAny(list, ", "); i >= 0 {
			item, list = list[i+1:], list[:i]
		} else {
			list = ""
		}
		next, nextPort, valid := parseClient(item)
		if !valid {
			break
		}
		a, port, ok = next, nextPort, true
		from = next
		if !s.recursive {
			break
		}
	}
	return a, port, ok
}

// parseClient reads an address, which may have a port. A zone it may not have: that is any text, and no network would
// contain the address.
func parseClient(text string) (netip.Addr, uint16, bool) {
	if strings.Contains(text, "%") {
		return netip.Addr{}, 0, false
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Unmap(), 0, true
	}
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap(), ap.Port(), true
	}
	if rest, ok := strings.CutPrefix(text, "["); ok {
		if a, err := netip.ParseAddr(strings.TrimSuffix(rest, "]")); err == nil {
			return a.Unmap(), 0, true
		}
	}
	return netip.Addr{}, 0, false
}

// cleaned is the client's request without the fields that the server does not look at. The one that came stays as it is.
func (r *request) cleaned() *forward.Request {
	if r.in.Plain {
		return r.in
	}
	fields := cleanFields(&r.conf.client, r.in.Fields)
	if len(fields) == len(r.in.Fields) {
		return r.in
	}
	in := *r.in
	in.Fields = fields
	return &in
}
