package plan

import (
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen"
	"github.com/upstrand/upstrand/confgen/declared"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// state is a topology as it would be with some declared files.
type state struct {
	set      *declared.Set
	faults   []topology.Fault
	warnings []topology.Fault

	config   *topology.Config
	records  map[string]string          // that carry it
	expanded *topology.Expanded         // of it
	groups   map[string]*topology.Group // by lower-case name

	// bare is the same without the declared routes, which keep what they lead to: what is there whoever names it.
	bare       *topology.Config
	bareGroups map[string]*topology.Group
	bareNames  names
	ownNames   names // of the declared files alone
}

func newState(snap registry.Snapshot, files []registry.DeclaredFile) *state {
	s := &state{set: declared.Read(confgen.Files(files))}
	s.faults, s.warnings = slices.Clone(s.set.Faults), slices.Clone(s.set.Warnings)
	build := func(c topology.Config) *topology.Config {
		return confgen.Build(confgen.Input{Instances: snap.Instances, Services: snap.Services, Claims: snap.Claims, Declared: &c}).Config
	}
	whole := *s.set.Config
	whole.Routes = nil
	s.bare = build(whole)
	bare, problems := topology.Expand(s.bare, options)
	s.bareGroups, s.bareNames, s.ownNames = byName(bare), namesOf(s.bare), namesOf(s.set.Config)
	s.config, s.expanded = s.bare, bare
	for _, r := range s.set.Config.Routes {
		if s.bareGroups[strings.ToLower(r.Upstream)] == nil || s.bareNames.upstreams[r.Upstream] { // else a singlet: it would give way to what is kept
			whole.Routes = append(whole.Routes, r)
		}
	}
	if len(whole.Routes) > 0 {
		s.config = build(whole)
		s.expanded, problems = topology.Expand(s.config, options)
	}
	s.groups = byName(s.expanded)
	for _, p := range problems {
		switch f, ok := s.set.Fault(p); { // that of derived ones is nobody's fault here
		case !ok:
		case p.Warning:
			s.warnings = append(s.warnings, f)
		case namesUpstream(p.Directive) && s.isZone(p.Directive[1]) && s.groups[p.Directive[1]] == nil:
			f.Reason, f.Allowed = p.Directive[1]+" "+awayNow(p.Directive[1])+"; it is passed over until then", ""
			s.warnings = append(s.warnings, f)
		default:
			s.faults = append(s.faults, f)
		}
	}
	s.encode()
	return s
}

// namesUpstream tells whether a line names another upstream.
func namesUpstream(d topology.Directive) bool {
	return len(d) > 1 && (d[0] == "upstream" || d[0] == "add_upstream")
}

// isZone tells whether a name is that of the zone of a known service, SERVICE@ZONE. These come and go with instances, and a
// zone that died must not keep operators from declaring anything that names it.
func (s *state) isZone(name string) bool {
	service, _, zoned := strings.Cut(name, "@")
	return zoned && s.bareNames.services[service]
}

func awayNow(zone string) string {
	service, _, _ := strings.Cut(zone, "@")
	return "is not there now: it is while " + service + " has instances there and in another zone"
}

func byName(x *topology.Expanded) map[string]*topology.Group {
	groups := make(map[string]*topology.Group, len(x.Upstreams))
	for _, g := range x.Upstreams {
		groups[strings.ToLower(g.Name)] = g
	}
	return groups
}

// encode makes the records; of services it only counts that they are there, since no declaration changes them. What can't
// be published is a fault.
func (s *state) encode() {
	c := s.config
	s.records = make(map[string]string, len(c.Upstreams)+len(c.Upstrands)+len(c.Routes)+len(c.Services))
	put := func(r topology.Record, err error) {
		if err != nil {
			s.faults = append(s.faults, topology.Fault{Reason: err.Error()})
			return
		}
		s.records[r.Key] = string(r.Value)
	}
	for _, sv := range c.Services {
		s.records[topology.ServiceKey(sv.Name)] = ""
	}
	for _, u := range c.Upstreams {
		put(topology.EncodeUpstream(u))
	}
	for _, u := range c.Upstrands {
		put(topology.EncodeUpstrand(u))
	}
	for _, r := range c.Routes {
		put(topology.EncodeRoute(r))
	}
}

// served is the routes that have a target, by record key.
func (s *state) served() map[string]bool {
	keys := map[string]bool{}
	for _, r := range s.expanded.Routes {
		keys[topology.RouteKey(r.Host, r.Path)] = true
	}
	return keys
}

// review finds routes without a target, and what else may not be meant. A route that had none in the other state either is
// only warned of.
func (s *state) review(other *state) {
	for _, r := range s.set.Config.Routes {
		reason, usable := s.targetless(r)
		if reason == "" {
			continue
		}
		if before, _ := other.targetless(r); before != "" && !usable && slices.Contains(other.set.Config.Routes, r) {
			reason, usable = s.kept(r), true
		}
		f := s.set.RouteFault(r, reason, "")
		if usable {
			s.warnings = append(s.warnings, f)
		} else {
			s.faults = append(s.faults, f)
		}
	}
	s.doubts()
}

// kept says of a route that beats took its target away, and that it is kept for the route.
func (s *state) kept(r topology.Route) string {
	name := r.Upstream + r.Upstrand
	peers := 0
	if g := s.groups[strings.ToLower(name)]; g != nil {
		peers = len(g.Peers)
	}
	return "route " + r.Host + r.Path + " leads to " + name + ", which is there only for the route, with " + counted(peers, "peer")
}

// targetless says what is wrong with a route's target; empty: nothing. It may be usable all the same.
func (s *state) targetless(r topology.Route) (reason string, usable bool) {
	where := "route " + r.Host + r.Path
	if name := r.Upstrand; name != "" {
		switch {
		case s.bareNames.upstrands[name]:
			return "", false
		case s.bareNames.upstreams[name] && !s.ownNames.upstreams[name]:
			return "service " + name + " has no upstrand now, having fewer than two zones: " + where + " leads to its upstream until there is one", true
		}
		return where + " leads to no upstrand: " + name + " is not declared, and no service of that name is known", false
	}
	name := r.Upstream
	switch g := s.bareGroups[strings.ToLower(name)]; {
	case g != nil && g.Name == name && s.bareNames.upstreams[name]:
		return "", false
	case g != nil && !s.bareNames.upstreams[g.Name]:
		return where + " leads to " + name + ", which combine_server_singlets makes; name that in an upstrand, and lead the route there", false
	case g != nil:
		return where + " leads to no upstream " + name + "; it is spelled " + g.Name, false
	case s.isZone(name):
		return where + " leads to " + name + ", which " + awayNow(name) + "; for the route it is kept", true
	}
	return where + " leads to no upstream: " + name + " is not declared, and no service of that name is known", false
}

// names is what a Config has, by name as spelled.
type names struct{ upstreams, upstrands, services map[string]bool }

func namesOf(c *topology.Config) names {
	n := names{make(map[string]bool, len(c.Upstreams)), make(map[string]bool, len(c.Upstrands)), make(map[string]bool, len(c.Services))}
	for _, u := range c.Upstreams {
		n.upstreams[u.Name] = true
	}
	for _, u := range c.Upstrands {
		n.upstrands[u.Name] = true
	}
	for _, sv := range c.Services {
		n.services[sv.Name] = true
	}
	return n
}
