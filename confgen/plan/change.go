package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// Kind is what a Change is about.
type Kind string

// The kinds.
const (
	Upstream Kind = "upstream"
	Upstrand Kind = "upstrand"
	Route    Kind = "route"
)

// Change is what becomes of one upstream, upstrand or route of the published topology, derived ones included: a derived
// one that gives way is one whose origin changes.
type Change struct {
	Kind          Kind
	Name          string // of a route: host and path
	Before, After *Side  // nil: it is not there
}

// Side is how it stands before or after.
type Side struct {
	Origin topology.Origin
	Lines  []string // its directives in the dialect; of a route the one that names its target
	Peers  int      // of an upstream; each name that proxies look up counts as one
}

// What happens, in one word.
const (
	Added    = "added"
	Removed  = "removed"
	Changed  = "changed"
	GivesWay = "gives way" // the derived one to a declared one
	Returns  = "returns"   // the derived one
)

// What is that word for the change.
func (c Change) What() string {
	switch {
	case c.Before == nil:
		return Added
	case c.After == nil:
		return Removed
	case c.Before.Origin == topology.Derived && c.After.Origin == topology.Declared:
		return GivesWay
	case c.Before.Origin == topology.Declared && c.After.Origin == topology.Derived:
		return Returns
	}
	return Changed
}

// Summary counts the changes: "2 upstreams added, 1 route gives way"; "no change" without any.
func Summary(changes []Change) string {
	var said []string
	for _, kind := range []Kind{Upstream, Upstrand, Route} {
		for _, what := range []string{Added, Removed, Changed, GivesWay, Returns} {
			n := 0
			for _, c := range changes {
				if c.Kind == kind && c.What() == what {
					n++
				}
			}
			if n > 0 {
				said = append(said, counted(n, string(kind))+" "+verb(n, what))
			}
		}
	}
	if len(said) == 0 {
		return "no change"
	}
	return strings.Join(said, ", ")
}

func counted(n int, what string) string {
	text := strconv.Itoa(n) + " " + what
	if n != 1 {
		text += "s"
	}
	return text
}

// verb is what several do.
func verb(n int, what string) string {
	if n == 1 {
		return what
	}
	return strings.NewReplacer("gives way", "give way", "returns", "return").Replace(what)
}

// changes are the differences between two states. Of an upstream that reads as before it counts that its peers differ.
func changes(before, after *state) []Change {
	out := compare(Upstream, before.upstreamSides(), after.upstreamSides())
	out = append(out, compare(Upstrand, before.upstrandSides(), after.upstrandSides())...)
	return append(out, compare(Route, before.routeSides(), after.routeSides())...)
}

func compare(kind Kind, before, after map[string]*Side) []Change {
	var out []Change
	for name, was := range before {
		if is := after[name]; is == nil || !same(was, is) {
			out = append(out, Change{Kind: kind, Name: name, Before: was, After: is})
		}
	}
	for name, is := range after {
		if before[name] == nil {
			out = append(out, Change{Kind: kind, Name: name, After: is})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func same(a, b *Side) bool {
	return a.Origin == b.Origin && a.Peers == b.Peers && slices.Equal(a.Lines, b.Lines)
}

func (s *state) upstreamSides() map[string]*Side {
	out := make(map[string]*Side, len(s.config.Upstreams))
	for _, u := range s.config.Upstreams {
		side := &Side{Origin: u.Origin, Lines: lines(u.Directives)}
		if g := s.groups[strings.ToLower(u.Name)]; g != nil {
			side.Peers = len(g.Peers)
		}
		out[u.Name] = side
	}
	return out
}

func (s *state) upstrandSides() map[string]*Side {
	out := make(map[string]*Side, len(s.config.Upstrands))
	for _, u := range s.config.Upstrands {
		out[u.Name] = &Side{Origin: u.Origin, Lines: lines(u.Directives)}
	}
	return out
}

func (s *state) routeSides() map[string]*Side {
	out := make(map[string]*Side, len(s.config.Routes))
	for _, r := range s.config.Routes {
		target := "http://" + r.Upstream
		if r.Upstrand != "" {
			target = "http://$upstrand_" + r.Upstrand
		}
		out[r.Host+r.Path] = &Side{Origin: r.Origin, Lines: lines([]topology.Directive{{"proxy_pass", target}})}
	}
	return out
}

// lines is directives as they are written.
func lines(directives []topology.Directive) []string {
	out := make([]string, len(directives))
	for i, d := range directives {
		out[i] = (&topology.Node{Name: d[0], Args: d[1:]}).String()
	}
	return out
}
