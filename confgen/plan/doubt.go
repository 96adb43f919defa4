package plan

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// somewhere stands for the addresses of a name in a server line. Proxies look names up where they are; here each counts as
// one peer.
func somewhere(string) ([]netip.Addr, error) {
	return []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, 1})}, nil
}

// someone does the same for names that are resolved at run time.
func someone(topology.Query) ([]topology.Answer, error) {
	return []topology.Answer{{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 0)}}, nil
}

var options = topology.ExpandOptions{Lookup: somewhere, Query: someone}

// doubts warns of what may come to mean something later, or was meant otherwise.
func (s *state) doubts() {
	warn := func(p topology.Problem) {
		if f, ok := s.set.Fault(p); ok {
			s.warnings = append(s.warnings, f)
		}
	}
	for i, u := range s.set.Config.Upstreams {
		sources := 0
		for line, d := range u.Directives {
			switch d[0] {
			case "server", "add_upstream", "discover":
				sources++
			}
			if reason := s.undiscovered(d); reason != "" {
				warn(topology.Problem{Upstream: i, Upstrand: -1, Line: line, Reason: reason})
			}
		}
		if sources == 0 {
			warn(topology.Problem{Upstream: i, Upstrand: -1, Line: -1, Reason: "has no server: requests for it are answered 503 (Service Unavailable)"})
		}
	}
	for i, u := range s.set.Config.Upstrands {
		for line, d := range u.Directives {
			if reason := s.unmatched(d); reason != "" {
				warn(topology.Problem{Upstream: -1, Upstrand: i, Line: line, Reason: reason})
			}
		}
	}
}

// undiscovered says why a discover line finds nobody now; empty: it does, or is no such line, or a fault.
func (s *state) undiscovered(d topology.Directive) string {
	if d[0] != "discover" || len(d) < 2 {
		return ""
	}
	service := d[1]
	i := slices.IndexFunc(s.bare.Services, func(sv topology.Service) bool { return sv.Name == service })
	switch {
	case i < 0:
		return "no service " + service + " is known; it may come"
	case len(s.bare.Services[i].Instances) == 0:
		return "service " + service + " has no live instance now"
	case len(d) == 2:
		return ""
	}
	only := &topology.Config{
		Services:  s.bare.Services[i : i+1],
		Upstreams: []topology.Upstream{{Name: "x", Origin: topology.Declared, Directives: []topology.Directive{d}}},
	}
	if x, problems := topology.Expand(only, topology.ExpandOptions{}); len(problems) > 0 || len(x.Upstreams[0].Peers) > 0 {
		return ""
	}
	return "no live instance of " + service + " has " + strings.Join(d[2:], " ")
}

// unmatched says that a regex matches no upstream now.
func (s *state) unmatched(d topology.Directive) string {
	if d[0] != "upstream" || len(d) < 2 || len(d[1]) < 2 || d[1][0] != '~' {
		return ""
	}
	re, err := regexp.Compile(d[1][1:])
	if err != nil || slices.ContainsFunc(s.expanded.Upstreams, func(g *topology.Group) bool { return re.MatchString(g.Name) }) {
		return ""
	}
	return "the pattern matches no upstream now"
}
