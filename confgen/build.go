package confgen

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// Input is all that a topology is made from.
type Input struct {
	Instances []registry.Instance // in any order; those that are not routable, and agents, are passed over
	Services  []registry.Service
	Claims    []registry.RouteClaim
	// Declared is what operators wrote; nil: nothing. Its upstreams, upstrands and routes win over derived ones of the same
	// name and stand as they are, but for what Build says of their targets. Its Services are not used: instances come from
	// the registry.
	Declared *topology.Config
	Policy   Policy
	Now      time.Time
}

// Policy is what operators set for the whole of the topology. There is nothing to set yet.
type Policy struct{}

// Output is a topology and what is worth telling about it.
type Output struct {
	Config *topology.Config
	// Next is when the answer can change though the registry does not; zero: never. Nothing depends on time alone yet:
	// staleness and the release of urls are changes of the registry.
	Next  time.Time
	Notes []Note // sorted
}

// Note is something that an operator should know: each becomes an event once.
type Note struct {
	Kind    string // NoteDeclaredWins, …
	Service string
	ID      string // of an instance, if it is about one
	Text    string
}

// The kinds of notes.
const (
	NoteDeclaredWins = registry.EventDeclaredWins    // a derived upstream, upstrand or route gave way to a declared one
	NoteBadDeclared  = registry.EventDeclarationBad  // the declared topology can't be read or published as it is
	NoteBadInstance  = registry.EventInstanceRefused // an instance that can't be published as it is
	NoteBadRoute     = registry.EventRouteRefused    // a claim whose path can't be published
	NotePathTaken    = registry.EventPathTaken       // two claims that come to the same path: the older one has it
	NoteBadService   = registry.EventServiceRefused  // a service that can't be published as it is
	NoteRestored     = registry.EventRestored        // the topic or an agent is ahead of the database
	NoteResumed      = registry.EventResumed
)

// Build derives the topology. It is pure: the same input, in whatever order, gives the same output.
//
// Each service that has a row, a claim or an instance gets its record, with its live and unproven instances in the order
// of their dense ids, and an upstream of its name. When its instances name two or more zones it also gets an upstream
// NAME@ZONE for each (NAME@ for those without) and an upstrand NAME over them; when the number of zones falls below two
// these go, and the service's routes lead to the upstream NAME, which is the same all the time and keeps its peers' state.
// Each claim is a route to the upstrand, if there is one, else to the upstream.
//
// A declared route never loses a target that beats gave it. One to a derived upstream (NAME or NAME@ZONE) keeps that in the
// topology, empty, though the service or the zone is gone; one to a derived upstrand leads to the upstream of its name while
// the upstrand is not there.
func Build(in Input) Output {
	b := newBook(in.Declared)
	b.load(registry.Snapshot{Instances: in.Instances, Services: in.Services, Claims: in.Claims})
	b.rebuild()
	return Output{Config: b.config(), Notes: b.notes()}
}

func compareNotes(a, b Note) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Service, b.Service), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Text, b.Text))
}

// derived is what one service gets without being declared.
type derived struct {
	upstreams []topology.Upstream
	upstrands []topology.Upstrand // none or one
	routes    []topology.Route
	notes     []Note
}

// derivation is one call of derive.
type derivation struct {
	service  string
	declared *declaration
	derived
}

// derive is pure; zones are the distinct ones of the instances, sorted, "" for those without one; paths are the routes
// that the service owns.
func derive(service string, zones, paths []string, declared *declaration) derived {
	d := &derivation{service: service, declared: declared}
	flat := d.upstream(service)
	zoned := len(zones) > 2 || (len(zones) == 2 && zones[0] != "")
	if zoned {
		for _, zone := range zones {
			d.upstream(service+"@"+zone, "zone="+zone)
		}
	}
	for _, zone := range declared.kept[service] {
		if !zoned || !slices.Contains(zones, zone) {
			d.upstream(service+"@"+zone, "zone="+zone)
		}
	}
	strand := declared.upstrands[strings.ToLower(service)]
	switch {
	case strand != "":
		if zoned {
			d.wins("upstrand", strand)
		}
	case zoned && declared.upstreams[service] == "": // else the upstrand would lead around the declared upstream
		strand = service
		d.upstrands = append(d.upstrands, zoneStrand(service, zones))
	}
	for _, path := range paths {
		if declared.routes[topology.RouteKey("", path)] {
			d.wins("route", path)
			continue
		}
		r := topology.Route{Path: path, Origin: topology.Derived, Upstream: flat}
		if strand != "" {
			r.Upstream, r.Upstrand = "", strand
		}
		d.routes = append(d.routes, r)
	}
	return d.derived
}

func (d *derivation) wins(what, name string) {
	d.notes = append(d.notes, Note{Kind: NoteDeclaredWins, Service: d.service, Text: "the declared " + what + " " + name + " wins over the derived one"})
}

// upstream derives one, unless one of its name, in any case, is declared. The result is how its name is spelled.
func (d *derivation) upstream(name string, args ...string) string {
	if spelled := d.declared.upstreams[strings.ToLower(name)]; spelled != "" {
		d.wins("upstream", spelled)
		return spelled
	}
	line := append(topology.Directive{"discover", d.service}, args...)
	d.upstreams = append(d.upstreams, topology.Upstream{Name: name, Origin: topology.Derived, Directives: []topology.Directive{line}})
	return name
}

// zoneStrand is the upstrand over a service's zones; those without a zone come last.
func zoneStrand(service string, zones []string) topology.Upstrand {
	ordered := slices.Clone(zones)
	if ordered[0] == "" {
		ordered = append(ordered[1:], "")
	}
	u := topology.Upstrand{Name: service, Origin: topology.Derived, OwnZoneFirst: true}
	for _, zone := range ordered {
		u.Directives = append(u.Directives, topology.Directive{"upstream", service + "@" + zone})
	}
	u.Directives = append(u.Directives, topology.Directive{"order", "per_request"},
		topology.Directive{"next_upstream_statuses", "error", "timeout"})
	return u
}
