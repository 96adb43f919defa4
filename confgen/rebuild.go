package confgen

import (
	"cmp"
	"maps"
	"slices"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// rebuild derives and encodes the services that changed, and returns the keys whose records did, some perhaps twice.
func (b *book) rebuild() []string {
	if b.reclaim {
		b.settle()
		b.reclaim = false
	}
	var changed []string
	set := func(key string, value []byte) {
		if b.want.set(key, value) {
			changed = append(changed, key)
		}
	}
	names := slices.Sorted(maps.Keys(b.dirty))
	// All that goes goes first: a route may move from one service to another.
	for _, name := range names {
		s := b.services[name]
		old := s.records
		_, kept := b.declared.kept[name]
		if s.records = nil; s.empty() && !kept {
			delete(b.services, name)
		} else {
			s.derived = derive(name, s.zones(), s.paths, b.declared)
			s.records, s.bad = s.encode(name)
		}
		for key := range old {
			if _, stays := s.records[key]; !stays {
				set(key, nil)
			}
		}
	}
	b.putDeclared(set)
	for _, name := range names {
		if s := b.services[name]; s != nil {
			for key, value := range s.records {
				set(key, value)
			}
		}
	}
	b.dirty = map[string]bool{}
	return changed
}

// empty says that nothing speaks for the service any more.
func (s *service) empty() bool {
	return !s.row && len(s.members) == 0 && len(s.paths) == 0 && len(s.refused) == 0
}

// zones is the distinct zones of the instances, sorted.
func (s *service) zones() []string {
	set := map[string]bool{}
	for _, m := range s.members {
		set[m.inst.Zone] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// encode is the service's records. What can't be encoded is left out of derived, too, and told; the rest stands.
func (s *service) encode(name string) (map[string][]byte, []Note) {
	e := encoding{service: name, records: make(map[string][]byte, 1+len(s.derived.upstreams)+len(s.derived.upstrands)+len(s.derived.routes))}
	texts := make([]topology.InstanceText, len(s.members))
	for i, m := range s.members {
		texts[i] = m.text
	}
	records, err := topology.JoinTexts(name, texts, s.parts)
	if err != nil {
		e.put(NoteBadService, topology.Record{}, err)
	}
	for _, r := range records {
		e.put(NoteBadService, r, nil)
	}
	s.parts = len(records)
	s.derived.upstreams = keep(&e, NoteBadService, s.derived.upstreams, topology.EncodeUpstream)
	s.derived.upstrands = keep(&e, NoteBadService, s.derived.upstrands, topology.EncodeUpstrand)
	s.derived.routes = keep(&e, NoteBadRoute, s.derived.routes, topology.EncodeRoute)
	return e.records, e.notes
}

// encoding collects the records of one service.
type encoding struct {
	service string
	records map[string][]byte
	notes   []Note
}

func (e *encoding) put(kind string, r topology.Record, err error) bool {
	if err != nil {
		e.notes = append(e.notes, Note{Kind: kind, Service: e.service, Text: err.Error()})
		return false
	}
	e.records[r.Key] = r.Value
	return true
}

// keep is those of the items that can be encoded.
func keep[T any](e *encoding, kind string, items []T, encode func(T) (topology.Record, error)) []T {
	return slices.DeleteFunc(items, func(item T) bool {
		r, err := encode(item)
		return !e.put(kind, r, err)
	})
}

// settle says which service owns which path. Of two claims that come to the same path the older one has it.
func (b *book) settle() {
	claims := slices.SortedFunc(maps.Values(b.claims), func(x, y registry.RouteClaim) int {
		return cmp.Or(cmp.Compare(x.ClaimedAt, y.ClaimedAt), cmp.Compare(x.Path, y.Path))
	})
	b.general = slices.DeleteFunc(b.general, func(n Note) bool { return n.Kind == NotePathTaken })
	owner := map[string]string{}
	paths := map[string][]string{}
	for _, c := range claims {
		if registry.IsAgent(c.Service) {
			continue
		}
		b.service(c.Service)
		path := registry.RoutePath(c.Path)
		if path == "" {
			continue // no claim of anything
		}
		first, taken := owner[path]
		if !taken {
			owner[path] = c.Service
			paths[c.Service] = append(paths[c.Service], path)
		} else if first != c.Service {
			b.general = append(b.general, Note{Kind: NotePathTaken, Service: c.Service, Text: "route " + path + " belongs to " + first})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.services)) {
		s, now := b.services[name], paths[name]
		slices.Sort(now)
		if slices.Equal(now, s.paths) {
			continue
		}
		for _, path := range now {
			if !slices.Contains(s.paths, path) {
				b.causes.add("route "+path, "", "→ "+name)
			}
		}
		for _, path := range s.paths {
			if _, moved := owner[path]; !moved {
				b.causes.add("route "+path, "", "gone")
			}
		}
		s.paths = now
		b.dirty[name] = true
	}
}
