package api

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

var (
	errUnpublished = errors.New("no topology has been published yet")
	errRecords     = errors.New("records can't be read")
)

// strandView is the upstrands of one topology version as a proxy sees them. It is immutable.
type strandView struct {
	version  int64
	byName   []*topology.Strand
	groups   map[string]*topology.Group
	routes   map[string][]string // by upstrand
	problems map[string][]string // likewise
	ownZone  map[string]bool     // likewise
}

// named finds an upstrand; its name has no case. Nil: there is none.
func (v *strandView) named(name string) *topology.Strand {
	for _, s := range v.byName {
		if strings.EqualFold(s.Name, name) {
			return s
		}
	}
	return nil
}

// strandViews keeps the content of the newest version, which never changes, the view of it without a zone, and that of the
// zone asked for last: one that reads or expands every record would be too much for each request.
type strandViews struct {
	mu        sync.Mutex // held while the records are read, so that they are read once
	version   int64
	digest    string
	config    *topology.Config
	published *strandView

	zones   sync.Mutex // held while a zone's view is made: one at a time
	zone    string
	zonedOf *topology.Config // of which zoned is; nil: there is none
	zoned   *strandView
}

// of is the view of the newest version. Errors: errUnpublished; errRecords when it holds what this release does not know;
// ctx's.
func (s *strandViews) of(ctx context.Context, store Reader, zone *string) (*strandView, error) {
	config, view, err := s.newest(ctx, store)
	if err != nil || zone == nil {
		return view, err
	}
	s.zones.Lock()
	defer s.zones.Unlock()
	if s.zonedOf == config && s.zone == *zone {
		return s.zoned, nil
	}
	if err := ctx.Err(); err != nil { // others took the time
		return nil, err
	}
	s.zone, s.zonedOf, s.zoned = *zone, config, viewOf(view.version, config, zone)
	return s.zoned, nil
}

func (s *strandViews) newest(ctx context.Context, store Reader) (*topology.Config, *strandView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for try := 0; ; try++ {
		newest, err := store.GetVersion(ctx, 0)
		if isNotFound(err) {
			return nil, nil, errUnpublished
		}
		if err != nil {
			return nil, nil, err
		}
		if s.published != nil && s.version == newest.Version && s.digest == newest.Digest {
			return s.config, s.published, nil
		}
		config, err := configOf(ctx, store, newest)
		if isNotFound(err) && try < 3 { // trimmed meanwhile: there is a newer one
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		s.version, s.digest, s.config = newest.Version, newest.Digest, config
		s.published = viewOf(newest.Version, config, nil)
		return s.config, s.published, nil
	}
}

// configOf reads all records of a version. The error is registry.ErrNotFound when it was trimmed while they were read.
func configOf(ctx context.Context, store Reader, v registry.Version) (*topology.Config, error) {
	var records []topology.Record
	for after := ""; ; {
		page, err := store.VersionRecords(ctx, v.Version, "", after, recordsAtOnce)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			records = append(records, topology.Record{Key: r.Key, Value: r.Value})
		}
		if len(page) < recordsAtOnce {
			break
		}
		after = page[len(page)-1].Key
	}
	if _, err := store.GetVersion(ctx, v.Version); err != nil {
		return nil, err
	}
	config, err := topology.DecodeRecords(records)
	if err != nil {
		return nil, fmt.Errorf("%w: version %d: %w", errRecords, v.Version, err)
	}
	return config, nil
}

const recordsAtOnce = 1000

// lookedUp stands for the addresses of names that proxies look up.
var lookedUp = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// viewOf expands a version. Without a zone, upstrands that prefer a proxy's own are as published.
func viewOf(version int64, c *topology.Config, zone *string) *strandView {
	v := &strandView{
		version: version, groups: map[string]*topology.Group{}, routes: map[string][]string{}, problems: map[string][]string{}, ownZone: map[string]bool{},
	}
	as := *c
	as.Upstrands = slices.Clone(c.Upstrands)
	for i := range as.Upstrands {
		u := &as.Upstrands[i]
		v.ownZone[u.Name] = u.OwnZoneFirst
		u.OwnZoneFirst = u.OwnZoneFirst && zone != nil
	}
	opts := topology.ExpandOptions{
		Lookup: func(string) ([]netip.Addr, error) { return []netip.Addr{lookedUp}, nil },
		Query: func(topology.Query) ([]topology.Answer, error) {
			return []topology.Answer{{Addr: netip.AddrPortFrom(lookedUp, 0)}}, nil
		},
	}
	if zone != nil {
		opts.Zone = *zone
	}
	x, problems := topology.Expand(&as, opts)
	v.byName = slices.SortedFunc(slices.Values(x.Upstrands), func(a, b *topology.Strand) int { return strings.Compare(a.Name, b.Name) })
	for _, g := range x.Upstreams {
		v.groups[g.Name] = g
	}
	for _, r := range x.Routes {
		if r.Upstrand != "" {
			v.routes[r.Upstrand] = append(v.routes[r.Upstrand], r.Host+r.Path)
		}
	}
	for _, p := range problems {
		if p.Upstrand >= 0 {
			name := as.Upstrands[p.Upstrand].Name
			v.problems[name] = append(v.problems[name], p.Error())
		}
	}
	return v
}
