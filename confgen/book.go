package confgen

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// book is Build in its incremental form: it holds what the registry said and the records that follow from it, and
// rebuilds only the services that changed.
type book struct {
	declared *declaration
	services map[string]*service
	claims   map[string]registry.RouteClaim // by the registry's path
	dirty    map[string]bool                // services to rebuild
	reclaim  bool                           // claims changed: who owns which path must be settled again
	want     content
	causes   causes
	general  []Note // about no service: of claims

	// Of the declared part.
	read            int64             // revision that declared was read from; 0: none was
	redeclared      bool              // it is another one than that of the last rebuild
	published       map[string][]byte // its records as of the last rebuild
	cause           string            // what led to it
	unread          []Note            // the registry has another one that can't be read
	refusedDeclared []Note            // of it, what can't be published
}

// service is one service's part of the book.
type service struct {
	row     bool // the registry has a row for it
	members []member
	orders  map[string]int64 // instance id → order, which finds its place in members
	refused map[string]Note  // instances that can't be published, by id
	paths   []string         // routes that it owns, sorted
	parts   int              // records that it is split into on the topic
	derived derived
	records map[string][]byte
	bad     []Note // of the last rebuild
}

func newBook(declared *topology.Config) *book {
	b := &book{
		declared: newDeclaration(nil),
		services: map[string]*service{},
		claims:   map[string]registry.RouteClaim{},
		dirty:    map[string]bool{},
		want:     newContent(),
	}
	b.declare(declared)
	return b
}

// prime fills an empty book with what was published last, so that load tells what changed since and keeps the parts of
// split services.
func (b *book) prime(c *topology.Config, parts map[string]int) {
	for _, s := range c.Services {
		sv := b.service(s.Name)
		sv.parts = parts[s.Name]
		for _, in := range s.Instances {
			text, err := topology.EncodeInstance(in)
			if err != nil {
				continue // load puts it in, or it is gone
			}
			sv.members = append(sv.members, member{inst: in, text: text})
			sv.orders[in.ID] = in.Order
		}
		b.dirty[s.Name] = true
	}
	b.primeDeclared(c)
	for _, r := range c.Routes {
		if r.Origin == topology.Derived {
			sv := b.service(strings.ToLower(cmp.Or(r.Upstream, r.Upstrand))) // a declared one's name may have capitals
			sv.paths = append(sv.paths, r.Path)
		}
	}
	for _, s := range b.services {
		slices.Sort(s.paths)
	}
}

// service is the named one, made when there is none.
func (b *book) service(name string) *service {
	s := b.services[name]
	if s == nil {
		s = &service{orders: map[string]int64{}, refused: map[string]Note{}, records: map[string][]byte{}}
		b.services[name] = s
		b.dirty[name] = true
	}
	return s
}

// load makes the book equal to a snapshot of the whole registry.
func (b *book) load(snap registry.Snapshot) {
	routable := make(map[string]map[string]bool, len(snap.Services))
	for _, in := range snap.Instances {
		b.put(in)
		if in.Liveness.Routable() {
			if routable[in.Service] == nil {
				routable[in.Service] = map[string]bool{}
			}
			routable[in.Service][in.ID] = true
		}
	}
	rows := make(map[string]bool, len(snap.Services))
	for _, s := range snap.Services {
		rows[s.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(b.services)) {
		s := b.services[name]
		for _, id := range slices.Sorted(maps.Keys(s.orders)) {
			if !routable[name][id] {
				b.remove(name, id, "")
			}
		}
		maps.DeleteFunc(s.refused, func(id string, _ Note) bool { return !routable[name][id] })
		b.setRow(name, rows[name])
	}
	for name := range rows {
		b.setRow(name, true)
	}
	b.claims = make(map[string]registry.RouteClaim, len(snap.Claims))
	for _, c := range snap.Claims {
		b.claims[c.Path] = c
	}
	b.reclaim = true
	if snap.Declared != nil {
		b.readDeclared(*snap.Declared)
	}
}

// apply takes what changed since the last load or apply.
func (b *book) apply(ch registry.Snapshot) {
	for _, in := range ch.Instances {
		b.put(in)
	}
	for _, s := range ch.Services {
		b.setRow(s.Name, true)
	}
	for _, name := range ch.RemovedServices {
		b.setRow(name, false)
	}
	for _, c := range ch.Claims {
		b.claims[c.Path] = c
		b.reclaim = true
	}
	for _, path := range ch.RemovedClaims {
		delete(b.claims, path)
		b.reclaim = true
	}
	if ch.Declared != nil {
		b.readDeclared(*ch.Declared)
	}
}

func (b *book) setRow(name string, row bool) {
	if registry.IsAgent(name) || (!row && b.services[name] == nil) {
		return
	}
	if s := b.service(name); s.row != row {
		s.row = row
		b.dirty[name] = true
	}
}

// put takes an instance as it is now.
func (b *book) put(in registry.Instance) {
	if registry.IsAgent(in.Service) {
		return
	}
	if !in.Liveness.Routable() {
		b.remove(in.Service, in.ID, in.Liveness)
		return
	}
	m, err := newMember(in)
	if err != nil {
		b.remove(in.Service, in.ID, "")
		b.service(in.Service).refused[in.ID] = Note{Kind: NoteBadInstance, Service: in.Service, ID: in.ID, Text: err.Error()}
		return
	}
	s := b.service(in.Service)
	delete(s.refused, in.ID)
	old, had := s.member(in.ID)
	if had && bytes.Equal(old.text.JSON, m.text.JSON) {
		return
	}
	b.dirty[in.Service] = true
	if had {
		s.drop(in.ID)
		b.causes.add(in.Service, in.ID, describe(old.inst, m.inst))
	} else {
		b.causes.add(in.Service, in.ID, "joined")
	}
	at, _ := slices.BinarySearchFunc(s.members, m, compareMembers)
	s.members = slices.Insert(s.members, at, m)
	s.orders[in.ID] = m.inst.Order
}

// remove takes an instance out, if it is in.
func (b *book) remove(name, id string, l registry.Liveness) {
	s := b.services[name]
	if s == nil {
		return
	}
	delete(s.refused, id)
	if _, had := s.orders[id]; !had {
		return
	}
	s.drop(id)
	b.dirty[name] = true
	b.causes.add(name, id, farewell(l))
}

// place is where the member stands; it must be there.
func (s *service) place(id string) int {
	at, _ := slices.BinarySearchFunc(s.members, member{inst: topology.Instance{ID: id, Order: s.orders[id]}}, compareMembers)
	return at
}

func (s *service) member(id string) (member, bool) {
	if _, ok := s.orders[id]; !ok {
		return member{}, false
	}
	return s.members[s.place(id)], true
}

func (s *service) drop(id string) {
	at := s.place(id)
	s.members = slices.Delete(s.members, at, at+1)
	delete(s.orders, id)
}

// notes is all that is worth telling now, sorted.
func (b *book) notes() []Note {
	out := slices.Concat(b.general, b.unread, b.refusedDeclared)
	for _, s := range b.services {
		out = append(out, s.derived.notes...)
		out = append(out, s.bad...)
		for _, n := range s.refused {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, compareNotes)
	return out
}

// config is the whole as one value. It is for Build and for tests: the Generator publishes want.
func (b *book) config() *topology.Config {
	c := &topology.Config{}
	c.Upstreams = slices.Clone(b.declared.config.Upstreams)
	c.Upstrands = slices.Clone(b.declared.config.Upstrands)
	c.Routes = b.routes()
	for _, name := range slices.Sorted(maps.Keys(b.services)) {
		s := b.services[name]
		instances := make([]topology.Instance, len(s.members))
		for i, m := range s.members {
			instances[i] = m.inst
		}
		c.Services = append(c.Services, topology.Service{Name: name, Instances: instances})
		c.Upstreams = append(c.Upstreams, s.derived.upstreams...)
		c.Upstrands = append(c.Upstrands, s.derived.upstrands...)
		c.Routes = append(c.Routes, s.derived.routes...)
	}
	slices.SortStableFunc(c.Upstreams, func(a, b topology.Upstream) int { return compareOrigin(a.Origin, b.Origin, a.Name, b.Name) })
	slices.SortStableFunc(c.Upstrands, func(a, b topology.Upstrand) int { return compareOrigin(a.Origin, b.Origin, a.Name, b.Name) })
	slices.SortFunc(c.Routes, func(a, b topology.Route) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path))
	})
	return c
}

// compareOrigin keeps the declared ones first and in their order, and sorts the derived ones by name.
func compareOrigin(ao, bo topology.Origin, an, bn string) int {
	switch {
	case ao == topology.Declared && bo == topology.Declared:
		return 0
	case ao == topology.Declared:
		return -1
	case bo == topology.Declared:
		return 1
	}
	return cmp.Compare(an, bn)
}
