package topology

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// DecodeRecords reads the live records of one version (no tombstone, no commit), in any order, into a Config. It is
// strict: what Encode would not write is an error.
func DecodeRecords(records []Record) (*Config, error) {
	r := NewReplica()
	for _, rec := range records {
		if rec.Value == nil || rec.Key == KeyCommit {
			return nil, fmt.Errorf("topology: decode: %s: a tombstone or commit is no content", clip(rec.Key))
		}
		if r.entries[rec.Key] != nil {
			return nil, fmt.Errorf("topology: decode: %s: twice", clip(rec.Key))
		}
		r.Put(rec.Key, rec.Value, 0, 0)
	}
	return r.assemble()
}

// item is a decoded record; exactly one of the pointers is set.
type item struct {
	name     name
	service  *Service
	upstream *Upstream
	upstrand *Upstrand
	route    *Route
}

// decodeRecord reads one record and checks that its key and its value agree.
func decodeRecord(key string, value []byte) (item, error) {
	n, err := parseKey(key)
	if err != nil {
		return item{}, err
	}
	it := item{name: n}
	switch n.kind {
	case kindService:
		it.service, err = decodeAs(value, Service.validate)
		if err == nil && it.service.Name != n.name {
			err = fmt.Errorf("holds service %q", clip(it.service.Name))
		}
	case kindUpstream:
		it.upstream, err = decodeAs(value, Upstream.validate)
		if err == nil && it.upstream.Name != n.name {
			err = fmt.Errorf("holds upstream %q", clip(it.upstream.Name))
		}
	case kindUpstrand:
		it.upstrand, err = decodeAs(value, Upstrand.validate)
		if err == nil && it.upstrand.Name != n.name {
			err = fmt.Errorf("holds upstrand %q", clip(it.upstrand.Name))
		}
	case kindRoute:
		it.route, err = decodeAs(value, Route.validate)
		if err == nil && (it.route.Host != n.host || it.route.Path != n.path) {
			err = fmt.Errorf("holds route %q", clip(it.route.Host+it.route.Path))
		}
	}
	if err != nil {
		return item{}, fmt.Errorf("topology: decode %s: %w", clip(key), err)
	}
	return it, nil
}

func decodeAs[T any](value []byte, validate func(T) error) (*T, error) {
	v := new(T)
	if err := decodeJSON(value, v); err != nil {
		return nil, err
	}
	if err := validate(*v); err != nil {
		return nil, err
	}
	return v, nil
}

// joinParts puts a service together from its decoded records, by part number; part whole stands alone.
func joinParts(service string, parts map[int]*Service) (*Service, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	if s := parts[whole]; s != nil {
		if len(parts) > 1 {
			return nil, fmt.Errorf("topology: service %s: whole and in parts at once", service)
		}
		return s, nil
	}
	n := len(parts)
	if n < 2 || n&(n-1) != 0 {
		return nil, fmt.Errorf("topology: service %s: %d parts are no power of two from 2", service, n)
	}
	var errs []error
	var refs []instanceRef
	for k := range n {
		p := parts[k]
		if p == nil {
			return nil, fmt.Errorf("topology: service %s: part %d of %d is missing", service, k, n)
		}
		for i := range p.Instances {
			in := &p.Instances[i]
			if partOf(in.ID, n) != k {
				errs = append(errs, fmt.Errorf("topology: instance %s/%s: stands in part %d of %d, not its own", service, in.ID, k, n))
			}
			refs = append(refs, instanceRef{in.Order, in})
		}
	}
	return gather(service, refs), errors.Join(errs...)
}

// instanceRef is small, unlike an Instance, so that sorting many is cheap.
type instanceRef struct {
	order int64
	in    *Instance
}

func gather(service string, refs []instanceRef) *Service {
	slices.SortFunc(refs, func(a, b instanceRef) int {
		if c := cmp.Compare(a.order, b.order); c != 0 {
			return c
		}
		return cmp.Compare(a.in.ID, b.in.ID)
	})
	s := &Service{Name: service, Instances: make([]Instance, len(refs))}
	for i, r := range refs {
		s.Instances[i] = *r.in
	}
	return s
}

// merge is old, which is sorted, without the named items of changed and with those of them that are not nil, sorted.
func merge[T any](old []T, changed map[string]*T, key func(T) string, compare func(a, b T) int) []T {
	if len(changed) == 0 {
		return old
	}
	added := make([]T, 0, len(changed))
	for _, v := range changed {
		if v != nil {
			added = append(added, *v)
		}
	}
	slices.SortFunc(added, func(a, b T) int { return cmp.Or(compare(a, b), cmp.Compare(key(a), key(b))) })
	out := make([]T, 0, len(old)+len(added))
	for _, v := range old {
		if _, gone := changed[key(v)]; gone {
			continue
		}
		for len(added) > 0 && compare(added[0], v) < 0 {
			out, added = append(out, added[0]), added[1:]
		}
		out = append(out, v)
	}
	return append(out, added...)
}
