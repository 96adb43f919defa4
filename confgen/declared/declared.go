// Package declared reads what operators declare: files in the dialect that hold upstreams, upstrands and routes, put
// together into one topology.Config whose origin is declared. README.md beside this file says what may stand in them.
//
// It knows no registry: whether a service exists, or a target is there, is for package plan to say; and it does not carry
// out the directives of upstreams, which topology.Expand does.
package declared

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/dialect"
	"github.com/upstrand/upstrand/confgen/topology"
)

// File is one declared file.
type File struct{ Name, Text string }

// Set is what the files say together.
type Set struct {
	// Config has upstreams and upstrands, Rank being the place among both of all files in the order of their names, and
	// routes by host and path. It has no services.
	Config *topology.Config
	// Faults is all that is wrong in all files, by file and line; with one or more of them the Config is incomplete.
	Faults []topology.Fault
	// Warnings are what was dropped, or may not be what was meant.
	Warnings []topology.Fault

	parts  []part
	routes map[string]*topology.Node // the location of each, by its record's key
}

// part is one file and where its blocks stand in the Config.
type part struct {
	doc                  *dialect.Doc
	upstreams, upstrands int // places in the Config of its first ones
}

// Read reads the files, in whatever order they are given.
func Read(files []File) *Set {
	r := &reader{set: &Set{Config: &topology.Config{}, routes: map[string]*topology.Node{}}, names: map[string]topology.Fault{}}
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range files {
		r.file(f)
	}
	slices.SortFunc(r.set.Config.Routes, func(a, b topology.Route) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path))
	})
	r.set.Faults, r.set.Warnings = topology.SortFaults(r.set.Faults), topology.SortFaults(r.set.Warnings)
	return r.set
}

// reader is one call of Read.
type reader struct {
	set    *Set
	rank   int                       // of the next block
	routes int                       // those that were declared so far, duplicates included
	names  map[string]topology.Fault // where a name was declared first
}

func (r *reader) fault(n *topology.Node, reason, allowed string) {
	r.set.Faults = append(r.set.Faults, n.Fault(reason, allowed))
}

// errAlone is why nothing but the file itself can be read.
var errAlone = errors.New("a declared file includes nothing")

func (r *reader) file(f File) {
	doc, faults := dialect.Read(f.Name, dialect.Options{
		ReadFile: func(name string) ([]byte, error) {
			if name != f.Name {
				return nil, errAlone
			}
			return []byte(f.Text), nil
		},
		Glob: func(string) ([]string, error) { return nil, errAlone },
	})
	for i := range faults {
		if faults[i].Name == "include" {
			faults[i].Reason, faults[i].Allowed = errAlone.Error(), "declare the other file under a name of its own"
		}
	}
	r.set.Faults = append(r.set.Faults, faults...)
	r.notices(doc.Notices)
	c := r.set.Config
	p := part{doc: doc, upstreams: len(c.Upstreams), upstrands: len(c.Upstrands)}
	r.set.parts = append(r.set.parts, p)
	for i, u := range doc.Config.Upstreams {
		u.Rank += r.rank
		c.Upstreams = append(c.Upstreams, u)
		r.declare("upstream", u.Name, doc, topology.Problem{Upstream: i, Upstrand: -1, Line: -1})
	}
	for i, u := range doc.Config.Upstrands {
		u.Rank += r.rank
		c.Upstrands = append(c.Upstrands, u)
		r.declare("upstrand", u.Name, doc, topology.Problem{Upstream: -1, Upstrand: i, Line: -1})
	}
	r.rank += len(doc.Config.Upstreams) + len(doc.Config.Upstrands)
	for _, n := range doc.Site {
		if n.Name != "server" {
			r.fault(n, "can't be declared: it is not part of a topology"+elsewhere, "upstream, upstrand, server")
			continue
		}
		r.server(n)
	}
}

// notices are warnings, but for a resolver outside of upstreams: in a file it would count for all of them, and what is
// published has no such place.
func (r *reader) notices(list []topology.Fault) {
	for _, n := range list {
		if n.Name == "resolver" || n.Name == "resolver_timeout" {
			n.Reason, n.Allowed = "can't be declared here", n.Name+" in each upstream that needs it"
			r.set.Faults = append(r.set.Faults, n)
			continue
		}
		r.set.Warnings = append(r.set.Warnings, n)
	}
}

// declare refuses a name that is there already, in any case: names of upstreams have none.
func (r *reader) declare(what, name string, doc *dialect.Doc, at topology.Problem) {
	f, _ := doc.Fault(at)
	key := what + " " + strings.ToLower(name)
	if first, twice := r.names[key]; twice {
		f.Reason = fmt.Sprintf("%s %q is declared at %s:%d already", what, name, first.File, first.Line)
		r.set.Faults = append(r.set.Faults, f)
		return
	}
	r.names[key] = f
}

// Fault is the place of a Problem that Expand found in a Config that begins with this one's upstreams and upstrands. ok is
// false for a Problem of another part of it, and for one that only follows from a fault that Read has reported.
func (s *Set) Fault(p topology.Problem) (f topology.Fault, ok bool) {
	if p.Upstream >= len(s.Config.Upstreams) || p.Upstrand >= len(s.Config.Upstrands) || p.Upstream < 0 && p.Upstrand < 0 {
		return topology.Fault{}, false
	}
	for _, part := range slices.Backward(s.parts) {
		if p.Upstream >= 0 && p.Upstream >= part.upstreams {
			p.Upstream -= part.upstreams
			return part.doc.Fault(p)
		}
		if p.Upstrand >= 0 && p.Upstrand >= part.upstrands {
			p.Upstrand -= part.upstrands
			return part.doc.Fault(p)
		}
	}
	return topology.Fault{}, false
}

// RouteFault is a fault at the place of a route of the Config.
func (s *Set) RouteFault(route topology.Route, reason, allowed string) topology.Fault {
	n := s.routes[topology.RouteKey(route.Host, route.Path)]
	if n == nil {
		return topology.Fault{Reason: "route " + route.Host + route.Path + ": " + reason, Allowed: allowed}
	}
	return n.Fault(reason, allowed)
}
