package site

import (
	"net/netip"

	"github.com/upstrand/upstrand/confgen/topology"
)

// accessSettings says who may, and whom a request comes from.
type accessSettings struct {
	rules  []accessRule
	realIP realIPSettings
}

func (a *accessSettings) defaults() { *a = accessSettings{realIP: realIPSettings{header: "X-Real-IP"}} }

// accessRule is an allow or deny line. The first that takes the client's address decides.
type accessRule struct {
	net   netip.Prefix // not valid: everybody
	allow bool
}

var accessSetters = map[string]setter{
	"allow":             accessSetter(true),
	"deny":              accessSetter(false),
	"satisfy":           setSatisfy,
	"set_real_ip_from":  setRealIPFrom,
	"real_ip_header":    setRealIPHeader,
	"real_ip_recursive": onOff(func(s *settings) *bool { return &s.access.realIP.recursive }),
	"stub_status":       setStubStatus,
}

func accessSetter(allow bool) setter {
	return func(l *level, n *topology.Node) {
		if !l.args(n, 1, 1) {
			return
		}
		a := &l.settings().access
		if l.first("allow, deny") {
			a.rules = nil
		}
		switch text := n.Args[0]; text {
		case "all":
			a.rules = append(a.rules, accessRule{allow: allow})
		case "unix:": // no client comes over such a socket
		default:
			net, err := parseNet(text)
			if err != nil {
				l.problem(n, quote(text), "an address, a network such as 10.0.0.0/8, unix: or all")
				return
			}
			a.rules = append(a.rules, accessRule{net, allow})
		}
	}
}

// parseNet reads an address or a network; bits beyond its length don't count.
func parseNet(text string) (netip.Prefix, error) {
	if net, err := netip.ParsePrefix(text); err == nil {
		return net.Masked(), nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// setSatisfy accepts both ways: addresses are the only thing that access depends on, so all and any are the same.
func setSatisfy(l *level, n *topology.Node) { unseen("all", "any")(l, n) }

// deniesAll tells whether nobody may.
func (a *accessSettings) deniesAll() bool {
	return len(a.rules) > 0 && !a.rules[0].allow && !a.rules[0].net.IsValid()
}

// access is 0 for who may, else the status to answer with.
func (r *request) access() int {
	for i := range r.conf.access.rules {
		rule := &r.conf.access.rules[i]
		if rule.net.IsValid() && !rule.net.Contains(r.remote.Unmap()) {
			continue
		}
		if rule.allow {
			return 0
		}
		return 403
	}
	return 0
}
