package site

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/script"
)

// listening is one listen directive of a server.
type listening struct {
	node      *topology.Node
	listen    Listen
	byDefault bool // takes what no server's name fits
}

// address is the servers that take requests of one address and port.
type address struct {
	otherwise *server // the default one
	declared  bool    // … and a listen says so
	servers   []*server
	tls       bool // a listen says ssl
	http2     bool // a listen says http2
	one       bool // the default server takes all names, without captures
	names     script.Names[*server]
	patterns  []serverPattern
}

type serverPattern struct {
	re     *script.Regex[*request]
	server *server
}

// refusedListen are parameters that ask for what is not there.
var refusedListen = map[string]string{
	"spdy": "SPDY is gone", "quic": "HTTP/3 is not supported",
}

// acceptedListen are parameters that change no answer.
var acceptedListen = map[string]bool{
	"bind": true, "deferred": true, "reuseport": true, "rcvbuf": true, "sndbuf": true, "so_keepalive": true, "fastopen": true, "setfib": true,
	"accept_filter": true, "multipath": true,
}

const allowedListen = "ADDRESS:PORT, PORT, [IPV6]:PORT with default_server, ssl, http2, backlog=N, reuseport, proxy_protocol, max_conns=N, max_conns_per_address=N, ipv6only=on|off, bind, deferred, …"

func setListen(l *level, n *topology.Node) {
	if !l.args(n, 1, -1) || l.server == nil {
		return
	}
	at := listening{node: n, listen: Listen{V6Only: true, File: n.File, Line: n.Line}}
	addrs, err := l.listenAddrs(n.Args[0])
	if err != nil {
		l.problem(n, err.Error(), allowedListen)
		return
	}
	for _, p := range n.Args[1:] {
		name, value, _ := strings.Cut(p, "=")
		switch {
		case p == "default_server", p == "default":
			at.byDefault = true
		case refusedListen[name] != "":
			l.problem(n, p+": "+refusedListen[name], "HTTP/1.1 and HTTP/2")
		case name == "backlog":
			backlog, err := topology.ParseNumber(value, -1)
			if err != nil {
				l.problem(n, "backlog: "+err.Error(), allowedListen)
			}
			at.listen.Backlog = max(backlog, 0)
		case name == "max_conns", name == "max_conns_per_address":
			l.listenLimit(n, &at.listen, name, value)
		case p == "ipv6only=on", p == "ipv6only=off":
			at.listen.V6Only = p == "ipv6only=on"
		case p == "proxy_protocol":
			at.listen.ProxyProtocol = true
		case p == "ssl":
			at.listen.TLS = true
		case p == "http2":
			at.listen.HTTP2 = true
		case acceptedListen[name]:
			at.listen.ReusePort = at.listen.ReusePort || p == "reuseport"
		default:
			l.problem(n, fmt.Sprintf("parameter %q", p), allowedListen)
		}
	}
	for _, a := range addrs {
		at.listen.Addr = a
		for _, other := range l.server.listens {
			if other.listen.Addr == a {
				l.problem(n, "a duplicate listen "+n.Args[0], "each address once in a server")
			}
		}
		l.server.listens = append(l.server.listens, at)
	}
}

// listenLimit reads our own parameters max_conns=N and max_conns_per_address=N.
func (l *level) listenLimit(n *topology.Node, to *Listen, name, value string) {
	most, err := topology.ParseNumber(value, 1)
	switch {
	case err != nil:
		l.problem(n, name+": "+err.Error(), "1 or more")
	case name == "max_conns":
		to.Conns = most
	default:
		to.ConnsPerAddress = most
	}
}

// listenAddrs reads an address as listen gives it.
func (c *compiler) listenAddrs(text string) ([]netip.AddrPort, error) {
	if strings.HasPrefix(text, "unix:") {
		return nil, fmt.Errorf("%q: sockets of the file system are not served", text)
	}
	if port, ok := portOf(text); ok {
		return []netip.AddrPort{anyPort(port)}, nil
	}
	host, port, hasPort := cutPort(text)
	if !hasPort {
		port = "80"
	}
	n, ok := portOf(port)
	if !ok {
		return nil, fmt.Errorf("%q: port %q", text, port)
	}
	if host == "*" {
		return []netip.AddrPort{anyPort(n)}, nil
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && (a.Is4() || strings.HasPrefix(host, "[")) {
		return []netip.AddrPort{netip.AddrPortFrom(a, n)}, nil
	}
	if c.options.Lookup == nil || host == "" {
		return nil, fmt.Errorf("%q: %q is no address", text, host)
	}
	found, err := c.options.Lookup(host)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	out := make([]netip.AddrPort, len(found))
	for i, a := range found {
		out[i] = netip.AddrPortFrom(a.Unmap(), n)
	}
	return out, nil
}

func anyPort(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), port) }

func portOf(s string) (uint16, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil && n > 0
}

// cutPort splits HOST:PORT; the host may be in brackets.
func cutPort(s string) (host, port string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || i < strings.LastIndexByte(s, ']') {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// addresses sorts the servers by the addresses that they listen on.
func (c *compiler) addresses() {
	s := c.site
	s.at = map[netip.AddrPort]*address{}
	for _, srv := range c.servers {
		for _, at := range srv.listens {
			at.listen.TLS = at.listen.TLS || srv.set.tls.on
			a := s.at[at.listen.Addr]
			if a == nil {
				a = &address{otherwise: srv}
				s.at[at.listen.Addr] = a
				s.listens = append(s.listens, at.listen)
			} else {
				s.more(at.listen)
			}
			if at.byDefault {
				if a.declared {
					c.problem(at.node, "a duplicate default server for "+at.listen.Addr.String(), "one default_server for an address")
				}
				a.otherwise, a.declared = srv, true
			}
			a.add(srv)
			a.tls, a.http2 = a.tls || at.listen.TLS, a.http2 || at.listen.HTTP2
		}
	}
	for i := range s.listens {
		l := &s.listens[i]
		a := s.at[l.Addr]
		l.HTTP2 = l.HTTP2 || a.otherwise.set.tls.http2
		a.one = len(a.servers) == 1 && len(a.patterns) == 0
		c.settleTLS(a, l.Addr)
	}
	if len(s.listens) > 0 {
		s.first = s.at[s.listens[0].Addr]
	}
}

// more adds what another listen of the same address says of its socket.
func (s *Site) more(l Listen) {
	for i := range s.listens {
		if have := &s.listens[i]; have.Addr == l.Addr {
			have.Backlog = max(have.Backlog, l.Backlog)
			have.Conns, have.ConnsPerAddress = max(have.Conns, l.Conns), max(have.ConnsPerAddress, l.ConnsPerAddress)
			have.ReusePort = have.ReusePort || l.ReusePort
			have.ProxyProtocol = have.ProxyProtocol || l.ProxyProtocol
			have.TLS = have.TLS || l.TLS
			have.HTTP2 = have.HTTP2 || l.HTTP2
		}
	}
}

// add makes the server known by its names. A name that stands already is the first server's, as in nginx.
func (a *address) add(s *server) {
	a.servers = append(a.servers, s)
	for _, n := range s.names {
		if n.re != nil {
			a.patterns = append(a.patterns, serverPattern{n.re, s})
		} else {
			_ = a.names.Add(n.text, s)
		}
	}
}

// addressOf is the servers for where a request came in: the very address, else all addresses of its family on that port.
func (s *Site) addressOf(local netip.AddrPort) *address {
	if len(s.listens) == 1 {
		return s.first
	}
	ip := local.Addr().Unmap()
	if a := s.at[netip.AddrPortFrom(ip.WithZone(""), local.Port())]; a != nil {
		return a
	}
	all := netip.IPv4Unspecified()
	if ip.Is6() {
		all = netip.IPv6Unspecified()
	}
	if a := s.at[netip.AddrPortFrom(all, local.Port())]; a != nil {
		return a
	}
	if a := s.at[netip.AddrPortFrom(netip.IPv6Unspecified(), local.Port())]; a != nil {
		return a // an IPv4 connection to [::]:PORT without ipv6only
	}
	return s.first
}

// serverOf is the server of a name, which leaves its captures in the request.
func (a *address) serverOf(r *request, host string) *server {
	if a.one {
		return a.otherwise
	}
	if s, ok := a.names.Find(host); ok {
		return s
	}
	if host != "" {
		for i := range a.patterns {
			if a.patterns[i].re.Match(r, host) {
				return a.patterns[i].server
			}
		}
	}
	return a.otherwise
}

// hostOf is the name in an authority as $host gives it: lower case, without port and final dot; brackets stay. It reports
// false for what is no host.
func hostOf(authority []byte) (string, bool) {
	end, upper := len(authority), false
	bracket := end > 0 && authority[0] == '['
scan:
	for i, c := range authority {
		if lowHost[c] && !bracket {
			continue
		}
		switch {
		case c == ':' && !bracket:
			end = i
			break scan
		case c == ']' && bracket:
			end, bracket = i+1, false
			break scan
		case c == '.' && i > 0 && authority[i-1] == '.', c == '/', c == 0:
			return "", false
		case c >= 'A' && c <= 'Z':
			upper = true
		}
	}
	if bracket {
		return "", false // it is open
	}
	host := strings.TrimSuffix(textOf(authority[:end]), ".")
	if upper {
		host = strings.ToLower(host)
	}
	return host, true
}

// lowHost are bytes that are nothing but part of a name.
var lowHost = func() (set [256]bool) {
	for c := range set {
		set[c] = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	}
	return set
}()

// lowerText is strings.ToLower without a copy where there is nothing to change.
func lowerText(s string) string {
	if strings.ContainsFunc(s, isUpper) {
		return strings.ToLower(s)
	}
	return s
}
