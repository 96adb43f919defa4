package topology

import (
	"slices"
	"strings"
)

// expansion is one call of Expand.
type expansion struct {
	opts     ExpandOptions
	config   *Config
	old      map[string]*expandedGroup
	done     []*expandedGroup // by the place of the upstream in the Config; nil: not yet
	open     []bool           // being expanded now
	places   map[string]int   // by lower-case name; nil: not needed yet
	made     []placed         // all groups in their order
	names    map[string]int   // lower-case name of each of made; a duplicate is not in it
	most     int              // servers that add_upstream and singlets may make, in all
	copied   int              // those that they have made
	problems []Problem
}

// placed is a group and where its upstream was declared.
type placed struct {
	group *Group
	rank  int
}

// at is the group of the i-th upstream: the last call's when directives and all behind them are the same.
func (e *expansion) at(i int) *expandedGroup {
	if e.done[i] != nil {
		return e.done[i]
	}
	e.open[i] = true
	u := e.config.Upstreams[i]
	sources := discovered(e.config, u)
	g := e.old[u.Name]
	if g != nil && sameUpstream(g.from, u) && slices.EqualFunc(g.sources, sources, sameInstances) && e.sameAnswers(g) &&
		e.sameAdditions(i, g) && !g.cut && e.copied+g.copied <= e.most {
		e.copied += g.copied
	} else {
		g = e.expandUpstream(i, sources)
	}
	e.done[i], e.open[i] = g, false
	return g
}

func sameUpstream(a, b Upstream) bool {
	return a.Name == b.Name && a.Origin == b.Origin && slices.EqualFunc(a.Directives, b.Directives, slices.Equal[Directive])
}

// sameInstances compares identity: a Replica keeps the slice of a service that did not change.
func sameInstances(a, b []Instance) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (e *expansion) sameAdditions(i int, g *expandedGroup) bool {
	return !slices.ContainsFunc(g.added, func(a addition) bool {
		from, _ := e.source(i, a.name)
		return from.groupOrNil() != a.from.groupOrNil()
	})
}

// source finds what the i-th upstream may add by a name, of any case. A strict Config lets it name those above it; else
// it may name any but itself, also through others. The result is nil with a reason.
func (e *expansion) source(i int, name string) (*expandedGroup, string) {
	if strings.EqualFold(name, e.config.Upstreams[i].Name) {
		return nil, "upstream \"" + clip(name) + "\" makes recursion"
	}
	at, ok := e.place(name)
	if !ok || (e.opts.Strict && at > i) {
		if s := e.singlet(name); s != nil {
			return s, ""
		}
		return nil, "upstream \"" + clip(name) + "\" not found"
	}
	if e.open[at] {
		return nil, "upstream \"" + clip(name) + "\" makes recursion"
	}
	return e.at(at), ""
}

func (e *expansion) place(name string) (int, bool) {
	if e.places == nil {
		e.places = make(map[string]int, len(e.config.Upstreams))
		for i, u := range e.config.Upstreams {
			if lower := strings.ToLower(u.Name); !has(e.places, lower) {
				e.places[lower] = i
			}
		}
	}
	i, ok := e.places[strings.ToLower(name)]
	return i, ok
}

func has[V any](m map[string]V, key string) bool { _, ok := m[key]; return ok }

// singlet finds a singlet of an upstream above.
func (e *expansion) singlet(name string) *expandedGroup {
	if i, ok := e.names[strings.ToLower(name)]; ok {
		return &expandedGroup{from: Upstream{Name: e.made[i].group.Name}, group: e.made[i].group}
	}
	return nil
}

// publish puts a group and its singlets into the result. A name that is there already is left out.
func (e *expansion) publish(out *Expanded, i int, g *expandedGroup) {
	e.problems = append(e.problems, g.problems...)
	if e.names == nil {
		e.names = make(map[string]int, len(e.config.Upstreams))
	}
	rank := e.config.Upstreams[i].Rank
	for n := range 1 + len(g.singlets) {
		group := g.group
		if n > 0 {
			group = g.singlets[n-1]
		}
		lower := strings.ToLower(group.Name)
		_, twice := e.names[lower]
		if at, ok := e.place(lower); n > 0 && !e.opts.Strict && ok && at != i {
			twice = true // a declared or derived name beats a singlet's
		}
		if twice && (e.opts.Strict || n > 0) {
			e.problems = append(e.problems, e.problem(i, g.lineOf(n), "duplicate upstream \""+group.Name+"\""))
			continue
		}
		e.names[lower] = len(e.made)
		e.made = append(e.made, placed{group: group, rank: rank})
		out.Upstreams = append(out.Upstreams, group)
	}
}

// lineOf is the directive that made the n-th of a group (0) and its singlets; -1: the whole.
func (g *expandedGroup) lineOf(n int) int {
	if n == 0 {
		return -1
	}
	return slices.IndexFunc(g.from.Directives, func(d Directive) bool { return d[0] == "combine_server_singlets" })
}

// problem is one of the i-th upstream and its line-th directive.
func (e *expansion) problem(i, line int, reason string) Problem {
	u := e.config.Upstreams[i]
	p := Problem{Where: "upstream " + u.Name, Reason: reason, Upstream: i, Upstrand: -1, Line: line}
	if line >= 0 {
		p.Directive = u.Directives[line]
	}
	return p
}

// zones tells of a table of learned sessions that two upstreams would share.
func (e *expansion) zones(out *Expanded) {
	used := map[string]string{}
	for i, g := range e.done {
		s := g.group.Sticky
		if s == nil || s.Kind != "learn" {
			continue
		}
		if by, ok := used[s.Zone]; ok && e.opts.Strict {
			line := slices.IndexFunc(g.from.Directives, func(d Directive) bool { return d[0] == "sticky" })
			e.problems = append(e.problems, e.problem(i, line, "zone "+s.Zone+" is already used in upstream "+by))
			continue
		}
		used[s.Zone] = g.group.Name
	}
}

// discovered is the instances behind each discover line.
func discovered(c *Config, u Upstream) [][]Instance {
	var out [][]Instance
	for _, d := range u.Directives {
		if len(d) > 1 && d[0] == "discover" {
			out = append(out, c.instances(d[1]))
		}
	}
	return out
}

// instances of a service; none when there is no such service.
func (c *Config) instances(service string) []Instance {
	i, ok := slices.BinarySearchFunc(c.Services, service, func(s Service, name string) int {
		return compareServices(s, Service{Name: name})
	})
	if !ok {
		return nil
	}
	return c.Services[i].Instances
}

// named is the group of a name in any case; nil: there is none.
func (e *expansion) named(name string) *Group {
	if i, ok := e.names[strings.ToLower(name)]; ok {
		return e.made[i].group
	}
	return nil
}

func (e *expansion) checkRoute(r Route, strands map[string]*expandedStrand) string {
	if r.Upstream != "" {
		if g := e.named(r.Upstream); g == nil || g.Name != r.Upstream {
			return "no upstream " + r.Upstream
		}
	}
	if r.Upstrand != "" && strands[r.Upstrand] == nil {
		return "no upstrand " + r.Upstrand
	}
	return ""
}
