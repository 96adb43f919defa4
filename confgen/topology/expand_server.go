package topology

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// server is nginx's server line: server ADDR [weight= max_fails= fail_timeout= max_conns= slow_start= backup down drain].
// ADDR is an IP address with or without a port (80 then); names need a resolver and are not built yet.
func (x *upstreamExpansion) server(d Directive) string {
	if len(d) < 2 {
		return "want server ADDRESS [parameter…]"
	}
	addr, reason := serverAddr(d[1])
	if reason != "" {
		return reason
	}
	p := Peer{
		Key:         PeerKey{Server: d[1], Addr: addr},
		Addr:        addr,
		Scheme:      "http",
		Weight:      1,
		MaxFails:    DefaultMaxFails,
		FailTimeout: DefaultFailTimeout,
	}
	for _, arg := range d[2:] {
		if reason := p.parameter(arg); reason != "" {
			return reason
		}
	}
	x.add(p)
	return ""
}

func serverAddr(text string) (addr, reason string) {
	if strings.HasPrefix(text, "unix:") {
		return "", "unix sockets: " + notBuilt
	}
	if ap, err := netip.ParseAddrPort(text); err == nil && ap.Port() != 0 && ap.Addr().Zone() == "" {
		return ap.String(), ""
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if a, err := netip.ParseAddr(bare); err == nil && a.Zone() == "" && a.Is6() == (bare != text) {
		return netip.AddrPortFrom(a, 80).String(), ""
	}
	return "", "names to resolve: " + notBuilt + "; give an IP address"
}

// parameter takes one parameter of a server line. The result is why it can't be used.
func (p *Peer) parameter(arg string) string {
	name, value, valued := strings.Cut(arg, "=")
	switch name {
	case "backup", "down", "drain":
		if valued {
			return "parameter " + name + " has no value"
		}
		p.Backup = p.Backup || name == "backup"
		p.Down = p.Down || name == "down"
		p.Drain = p.Drain || name == "drain"
		return ""
	case "weight":
		return readNumber(&p.Weight, name, value, 1)
	case "max_fails":
		return readNumber(&p.MaxFails, name, value, 0)
	case "max_conns":
		return readNumber(&p.MaxConns, name, value, 0)
	case "fail_timeout":
		return readTime(&p.FailTimeout, name, value)
	case "slow_start":
		return readTime(&p.SlowStart, name, value)
	case "route", "resolve", "service":
		return "parameter " + name + ": " + notBuilt
	}
	return "unknown parameter " + arg
}

func readNumber(to *int, name, value string, least int) string {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > maxWeight {
		return "parameter " + name + "=" + value + ": want a number from " + strconv.Itoa(least)
	}
	*to = n
	return ""
}

// readTime reads nginx's whole seconds: 10, 10s, 5m, 1h.
func readTime(to *time.Duration, name, value string) string {
	unit := time.Second
	digits := value
	for suffix, u := range map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour} {
		if rest, ok := strings.CutSuffix(value, suffix); ok {
			digits, unit = rest, u
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > maxWeight {
		return "parameter " + name + "=" + value + ": want a time in seconds, such as 10s"
	}
	*to = time.Duration(n) * unit
	return ""
}
