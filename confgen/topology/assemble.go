package topology

import "errors"

// changes is what differs between two assemblies, by name; nil means gone.
type changes struct {
	services  map[string]*Service
	upstreams map[string]*Upstream
	upstrands map[string]*Upstrand
	routes    map[string]*Route
}

// assemble decodes what is dirty and puts it into a new Config; the one of before stays as it is. On an error nothing
// is taken over, and what was dirty stays so.
func (r *Replica) assemble() (*Config, error) {
	if len(r.dirty) == 0 {
		return r.config, nil
	}
	decoded, err := r.decodeDirty()
	if err != nil {
		return nil, err
	}
	ch, parts, err := r.collect(decoded)
	if err != nil {
		return nil, err
	}
	r.config = &Config{
		Services:  merge(r.config.Services, ch.services, func(s Service) string { return s.Name }, compareServices),
		Upstreams: merge(r.config.Upstreams, ch.upstreams, func(u Upstream) string { return u.Name }, compareUpstreams),
		Upstrands: merge(r.config.Upstrands, ch.upstrands, func(u Upstrand) string { return u.Name }, compareUpstrands),
		Routes:    merge(r.config.Routes, ch.routes, func(t Route) string { return RouteKey(t.Host, t.Path) }, compareRoutes),
	}
	r.takeOver(decoded, parts)
	return r.config, nil
}

// decodeDirty is the changed records, decoded; a nil item is one that is gone.
func (r *Replica) decodeDirty() (map[string]*item, error) {
	decoded := make(map[string]*item, len(r.dirty))
	var errs []error
	for key := range r.dirty {
		value := r.Get(key)
		if value == nil {
			decoded[key] = nil
			continue
		}
		it, err := decodeRecord(key, value)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		decoded[key] = &it
	}
	return decoded, errors.Join(errs...)
}

// collect sorts the decoded records by kind, and joins the services that have a changed part.
func (r *Replica) collect(decoded map[string]*item) (changes, map[string]map[int]*Service, error) {
	ch := changes{
		services:  map[string]*Service{},
		upstreams: map[string]*Upstream{},
		upstrands: map[string]*Upstrand{},
		routes:    map[string]*Route{},
	}
	parts := map[string]map[int]*Service{}
	for key, it := range decoded {
		n, now := r.items[key].name, item{}
		if it != nil {
			n, now = it.name, *it
		}
		switch n.kind {
		case kindService:
			r.touchPart(parts, n, now.service)
		case kindUpstream:
			ch.upstreams[n.name] = now.upstream
		case kindUpstrand:
			ch.upstrands[n.name] = now.upstrand
		case kindRoute:
			ch.routes[key] = now.route
		}
	}
	var errs []error
	for service, p := range parts {
		s, err := joinParts(service, p)
		if err != nil {
			errs = append(errs, err)
		}
		ch.services[service] = s
	}
	return ch, parts, errors.Join(errs...)
}

// touchPart copies the parts of a service from the last assembly when it meets it first, and sets or removes one.
func (r *Replica) touchPart(parts map[string]map[int]*Service, n name, now *Service) {
	p := parts[n.name]
	if p == nil {
		p = make(map[int]*Service, len(r.parts[n.name])+1)
		for k, s := range r.parts[n.name] {
			p[k] = s
		}
		parts[n.name] = p
	}
	if now == nil {
		delete(p, n.part)
	} else {
		p[n.part] = now
	}
}

func (r *Replica) takeOver(decoded map[string]*item, parts map[string]map[int]*Service) {
	for key, it := range decoded {
		if it != nil {
			r.items[key] = *it
			continue
		}
		delete(r.items, key)
	}
	for service, p := range parts {
		if len(p) == 0 {
			delete(r.parts, service)
		} else {
			r.parts[service] = p
		}
	}
	r.dirty = map[string]bool{}
}
