package proxy

import (
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
	"github.com/upstrand/upstrand/proxy/upstrand"
)

// strandEntry is an upstrand of a table.
type strandEntry struct {
	from     *topology.Strand
	spec     upstrand.Spec // what the table puts in force
	upstrand site.Upstrand
}

// addStrands puts upstrands into the table, but those whose name is taken. An upstrand of the same name before keeps its
// state; what is new of it comes in force with the table.
func (p *Proxy) addStrands(old, next *table, strands []*topology.Strand, s *step) {
	for i, from := range strands {
		name := strings.ToLower(from.Name)
		if next.strands[name] != nil || slices.ContainsFunc(strands[i+1:], func(o *topology.Strand) bool { return strings.EqualFold(o.Name, from.Name) }) {
			continue // of two in one file the last counts
		}
		var before *strandEntry
		if old != nil {
			before = old.strands[name]
		}
		e := p.strand(next, from, before)
		next.strands[name] = e
		next.strandOrder = append(next.strandOrder, name)
		if before == nil || !sameSpec(before.spec, e.spec) {
			s.strands = append(s.strands, e)
		}
	}
}

func (p *Proxy) strand(t *table, from *topology.Strand, before *strandEntry) *strandEntry {
	e := &strandEntry{from: from, spec: p.strandSpec(t, from), upstrand: site.Upstrand{Name: from.Name}}
	if before != nil {
		e.upstrand.State = before.upstrand.State
	} else {
		e.upstrand.State = upstrand.NewState(from.Name, upstrand.Env{Rand: p.config.Rand, AllBlocked: p.allBlocked})
	}
	for _, i := range from.Intercepts {
		statuses, _, _ := upstrand.ParseStatuses(i.Statuses) // Expand has checked them
		e.upstrand.Intercepts = append(e.upstrand.Intercepts, site.Intercept{Statuses: statuses, URI: i.URI})
	}
	return e
}

func (p *Proxy) allBlocked(name string) {
	p.log.Warn().Str("upstrand", name).Msg("all upstreams were blacklisted: all are taken off the list")
}

// strandSpec is what package upstrand has to know of an upstrand. In a derived one what was sent and must not be sent twice
// stays where it is, and no other upstream is asked later than Config.Policy allows another try.
func (p *Proxy) strandSpec(t *table, from *topology.Strand) upstrand.Spec {
	spec := upstrand.Spec{PerRequest: from.PerRequest, StartRandom: from.StartRandom, NonIdempotent: from.NonIdempotent, Timeout: from.NextTimeout}
	spec.Next, _, _ = upstrand.ParseStatuses(from.NextStatuses) // Expand has checked them
	if from.Origin == topology.Derived {
		spec.SentIsFinal, spec.Timeout = true, p.config.Policy.Within
	}
	for _, m := range from.Members {
		e := t.groups[m.Upstream]
		if e == nil && t.names != nil {
			e = t.names[strings.ToLower(m.Upstream)] // the file has one of this name in another case
		}
		if e != nil {
			spec.Members = append(spec.Members, upstrand.Member{
				Name: m.Upstream, Backup: m.Backup, Blacklist: m.Blacklist, Group: e.group, Link: &e.upstream,
			})
		}
	}
	return spec
}

func sameSpec(a, b upstrand.Spec) bool {
	members := slices.Equal(a.Members, b.Members)
	return members && a.PerRequest == b.PerRequest && a.StartRandom == b.StartRandom && a.NonIdempotent == b.NonIdempotent &&
		a.SentIsFinal == b.SentIsFinal && a.Timeout == b.Timeout && a.Next == b.Next
}

// Upstrand is site.Env's: the upstrand of a name in lower case.
func (t *table) Upstrand(name string) *site.Upstrand {
	if e := t.strands[name]; e != nil {
		return &e.upstrand
	}
	return nil
}

// begin gives the upstream of a route, or a walk that is kept in walk.
func (to *target) begin(walk *upstrand.Walk, method []byte, now int64) (*balance.Group, forward.Walk) {
	if to.strand == nil {
		return to.group, nil
	}
	*walk = to.strand.upstrand.State.Begin(upstrand.Ask{Method: method}, now)
	return nil, walk
}

// keepBody has the body of a request held that may go to several upstreams.
func (p *Proxy) keepBody(r *forward.Request, walk forward.Walk) {
	if k, ok := r.Body.(forward.Keeper); ok && walk != nil && walk.More() {
		k.Keep(p.config.KeepBody)
	}
}

// stops is the upstreams of a route: an upstrand's normal ones, then its backup.
func (to *target) stops() (names []string) {
	if to.strand == nil {
		return []string{to.group.Name()}
	}
	for _, backup := range []bool{false, true} {
		for _, m := range to.strand.spec.Members {
			if m.Backup == backup {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// Upstrands is the names of those in force, in their order: the file's, then published ones.
func (p *Proxy) Upstrands() (names []string) {
	if t := p.table.Load(); t != nil {
		for _, name := range t.strandOrder {
			names = append(names, t.strands[name].from.Name)
		}
	}
	return names
}

// Upstrand is what an upstrand in force remembers; its name has no case. Nil: there is none.
func (p *Proxy) Upstrand(name string) *upstrand.State {
	if e := p.strandEntry(name); e != nil {
		return e.upstrand.State
	}
	return nil
}

// Strand is what an upstrand in force was built from; nil: there is none. It must not be changed.
func (p *Proxy) Strand(name string) *topology.Strand {
	if e := p.strandEntry(name); e != nil {
		return e.from
	}
	return nil
}

// UpstrandView is an upstrand in force as it stands; false: there is none of this name.
func (p *Proxy) UpstrandView(name string) (upstrand.View, bool) {
	if s := p.Upstrand(name); s != nil {
		return s.View(p.clock()), true
	}
	return upstrand.View{}, false
}

// ResetUpstrand takes an upstream of an upstrand off the blacklist; with an empty upstream all of them, and the next request
// starts at the first. It reports how many were blacklisted; false: there is no such upstrand or upstream.
func (p *Proxy) ResetUpstrand(name, upstream string) (cleared int, ok bool) {
	if s := p.Upstrand(name); s != nil {
		return s.Reset(upstream)
	}
	return 0, false
}

func (p *Proxy) strandEntry(name string) *strandEntry {
	if t := p.table.Load(); t != nil {
		return t.strands[strings.ToLower(name)]
	}
	return nil
}
