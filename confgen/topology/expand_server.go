package topology

import (
	"fmt"
	"net/netip"
	"strings"
)

// maxRoute is the longest text of route=.
const maxRoute = 32

// server is nginx's server line: server ADDR [weight= max_fails= fail_timeout= max_conns= slow_start= route= service=
// backup down drain resolve]. ADDR is an IP address or a name, with or without a port (80 then).
func (x *upstreamExpansion) server(d Directive) string {
	if len(d) < 2 {
		return "want server ADDRESS [parameter…]"
	}
	line := serverLine{peer: Peer{
		Text:        d[1],
		Scheme:      "http",
		Weight:      1,
		MaxFails:    DefaultMaxFails,
		FailTimeout: DefaultFailTimeout,
	}}
	for _, arg := range d[2:] {
		if reason := line.parameter(arg, x.noBackup); reason != "" {
			return reason
		}
	}
	if line.peer.SlowStart > 0 {
		x.slowStarts = append(x.slowStarts, x.line)
	}
	target, reason := parseTarget(d[1])
	if reason == "" {
		reason = line.check(target)
	}
	if reason != "" {
		return reason
	}
	return x.serve(line, target)
}

// serve adds the peers of a line.
func (x *upstreamExpansion) serve(line serverLine, to target) string {
	en := serverEntry{text: line.peer.Text, backup: line.peer.Backup}
	switch {
	case to.host == "":
		line.peer.Addr = netip.AddrPortFrom(to.addr, to.port).String()
		line.peer.Key = PeerKey{Server: line.peer.Text, Addr: line.peer.Addr}
		x.addEntry(en, line.peer)
		return ""
	case line.resolve:
		en.runtime = true
		peers, reason := x.query(line, to)
		x.addEntry(en, peers...)
		return reason
	}
	peers, reason := x.lookup(line.peer, to)
	if reason == "" {
		x.addEntry(en, peers...)
	}
	return reason
}

// target is where a server line leads: an address, or a host to be resolved.
type target struct {
	addr    netip.Addr // without host
	host    string
	port    uint16
	hasPort bool
}

const defaultPort = 80

// parseTarget reads HOST, HOST:PORT, IP, IP:PORT, [IP6], [IP6]:PORT.
func parseTarget(text string) (t target, reason string) {
	t.port = defaultPort
	switch {
	case strings.HasPrefix(text, "unix:"):
		return t, "unix sockets are not built yet; let the server listen on an address of the loopback"
	case strings.Contains(text, "://"):
		return t, "a server has no scheme; want HOST, HOST:PORT or IP:PORT, and https in proxy_pass"
	case strings.ContainsAny(text, "/?#"):
		return t, "a server has no path; put it into proxy_pass"
	}
	host, port := text, ""
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		host, port, t.hasPort = text[:i], text[i+1:], true
	}
	if t.hasPort {
		n, err := ParseNumber(port, 1)
		if err != nil || n > 65535 {
			return t, "invalid port in \"" + clip(text) + "\"; want 1 to 65535, and brackets around an IPv6 address"
		}
		t.port = uint16(n)
	}
	return t, t.read(host)
}

func (t *target) read(host string) string {
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	a, err := netip.ParseAddr(bare)
	switch {
	case err == nil && a.Zone() == "" && a.Is6() == (bare != host):
		t.addr = a
		return ""
	case err == nil, bare != host, !isHost(host):
		return "invalid host \"" + clip(host) + "\"; want a name, an IPv4 address, or an IPv6 address in brackets"
	}
	t.host = host
	return ""
}

// isHost knows the letters of names in the DNS, and _ which containers have.
func isHost(s string) bool {
	if s == "" || len(s) > 255 || s[0] == '.' || s[0] == '-' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
	}) < 0
}

// serverLine is a server line while it is read.
type serverLine struct {
	peer    Peer
	resolve bool
	service string
}

// parameter takes one parameter. The result is why it can't be used.
func (l *serverLine) parameter(arg string, noBackup bool) string {
	p := &l.peer
	name, value, _ := strings.Cut(arg, "=")
	switch arg {
	case "backup":
		if noBackup {
			return "balancing method does not support parameter \"backup\" here: ip_hash, hash and random have no backup servers"
		}
		p.Backup = true
		return ""
	case "down": // the last of down and drain counts
		p.Down, p.Drain = true, false
		return ""
	case "drain":
		p.Down, p.Drain = false, true
		return ""
	case "resolve":
		l.resolve = true
		return ""
	}
	if len(name) == len(arg) {
		return invalidParameter(arg, "want one of "+serverParameters)
	}
	var err error
	switch name {
	case "weight":
		p.Weight, err = parseWeight(value)
	case "max_fails":
		p.MaxFails, err = ParseNumber(value, 0)
	case "max_conns":
		p.MaxConns, err = ParseNumber(value, 0)
	case "fail_timeout":
		p.FailTimeout, err = ParseSeconds(value)
	case "slow_start":
		p.SlowStart, err = ParseTime(value)
	case "route":
		return l.route(value)
	case "service":
		if value == "" {
			return "service is empty"
		}
		l.service = value
	default:
		return invalidParameter(arg, "want one of "+serverParameters)
	}
	if err != nil {
		return invalidParameter(arg, wanted(err))
	}
	return ""
}

const serverParameters = "weight= max_fails= fail_timeout= max_conns= slow_start= route= service= backup down drain resolve"

func invalidParameter(arg, why string) string {
	return "invalid parameter \"" + clip(arg) + "\": " + why
}

// wanted leaves out the text that an error of the units begins with, where that is said already.
func wanted(err error) string {
	if _, after, ok := strings.Cut(err.Error(), "\": "); ok {
		return after
	}
	return err.Error()
}

// parseWeight reads a weight from 1 to maxWeight.
func parseWeight(value string) (int, error) {
	n, err := ParseNumber(value, 1)
	if err != nil || n > maxWeight {
		return 0, fmt.Errorf("%q: want a number from 1 to %d", clip(value), maxWeight)
	}
	return n, nil
}

func (l *serverLine) route(value string) string {
	switch {
	case value == "":
		return "route is empty"
	case len(value) > maxRoute:
		return "route is longer than 32 bytes"
	}
	l.peer.Route = value
	return ""
}

// check holds resolve and service to what they need.
func (l *serverLine) check(to target) string {
	switch {
	case l.service == "":
		return ""
	case !l.resolve:
		return "service upstream \"" + l.peer.Text + "\" requires \"resolve\" parameter"
	case to.hasPort:
		return "service upstream \"" + l.peer.Text + "\" may not have port"
	case to.host == "":
		return "service upstream \"" + l.peer.Text + "\" requires domain name"
	}
	return ""
}
