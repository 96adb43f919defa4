package confgen

import (
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// declaration is the declared part of a topology, and what follows from it for the derived part. It is immutable.
type declaration struct {
	config *topology.Config
	// upstreams and upstrands are the names that derived ones give way to, as spelled, by their lower-case form.
	upstreams, upstrands map[string]string
	routes               map[string]bool // by record key
	// kept is the services that a declared route leads to: they stay in the topology, with these of their zones.
	kept map[string][]string
	// moves: some route leads to a derived upstrand, which may come and go.
	moves bool
}

// newDeclaration takes nil for nothing.
func newDeclaration(c *topology.Config) *declaration {
	if c == nil {
		c = &topology.Config{}
	}
	d := &declaration{config: c, upstreams: map[string]string{}, upstrands: map[string]string{}, routes: map[string]bool{}, kept: map[string][]string{}}
	for _, u := range c.Upstreams {
		d.upstreams[strings.ToLower(u.Name)] = u.Name
	}
	for _, u := range c.Upstrands {
		d.upstrands[strings.ToLower(u.Name)] = u.Name
	}
	for _, r := range c.Routes {
		d.routes[topology.RouteKey(r.Host, r.Path)] = true
	}
	for _, r := range c.Routes {
		d.keep(r)
	}
	return d
}

// keep notes which derived upstream a route needs.
func (d *declaration) keep(r topology.Route) {
	name := r.Upstream
	if name == "" && d.upstrands[strings.ToLower(r.Upstrand)] == "" {
		name, d.moves = r.Upstrand, true
	}
	service, zone, zoned := strings.Cut(name, "@")
	if name == "" || d.upstreams[strings.ToLower(name)] != "" || !registry.IsServiceName(service) || registry.IsAgent(service) {
		return
	}
	if _, known := d.kept[service]; !known {
		d.kept[service] = nil
	}
	if zoned && !slices.Contains(d.kept[service], zone) {
		d.kept[service] = append(d.kept[service], zone)
		slices.Sort(d.kept[service])
	}
}

// led are the routes with their targets as of now: one to a derived upstrand that is not there leads to the upstream.
func (d *declaration) led(derivedStrand func(name string) bool) []topology.Route {
	routes := slices.Clone(d.config.Routes)
	for i, r := range routes {
		_, kept := d.kept[r.Upstrand]
		if r.Upstrand != "" && kept && d.upstrands[strings.ToLower(r.Upstrand)] == "" && !derivedStrand(r.Upstrand) {
			routes[i].Upstream, routes[i].Upstrand = r.Upstrand, ""
		}
	}
	return routes
}

// touched are the services whose derived part may differ between two declarations.
func (d *declaration) touched(o *declaration) map[string]bool {
	services := map[string]bool{}
	add := func(name string) {
		service, _, _ := strings.Cut(name, "@")
		services[service] = true
	}
	for name := range unequal(d.upstreams, o.upstreams) {
		add(name)
	}
	for name := range unequal(d.upstrands, o.upstrands) {
		add(name)
	}
	for _, pair := range [][2]*declaration{{d, o}, {o, d}} {
		for service, zones := range pair[0].kept {
			if other, both := pair[1].kept[service]; !both || !slices.Equal(zones, other) {
				add(service)
			}
		}
	}
	return services
}

// unequal are the keys that stand for something else in the two maps, or for something in one of them only.
func unequal[V comparable](a, b map[string]V) map[string]bool {
	out := map[string]bool{}
	for _, pair := range [][2]map[string]V{{a, b}, {b, a}} {
		for key, value := range pair[0] {
			if other, both := pair[1][key]; !both || other != value {
				out[key] = true
			}
		}
	}
	return out
}
