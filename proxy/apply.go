package proxy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/http1"
	"github.com/upstrand/upstrand/proxy/site"
)

// errNoConfig: a topology without content can't be applied; an empty Config can.
var errNoConfig = errors.New("proxy: apply: the topology has no config")

// Apply puts a topology in force, beside the file if there is one. All that can fail comes before the first live change;
// on an error what was in force stays. When it returns, no new request and no retry goes to a peer that left. Calls are
// serialised; whether a version may follow the one in force is for the caller to know.
func (p *Proxy) Apply(t *topology.Topology) error {
	if t == nil || t.Config == nil {
		return errNoConfig
	}
	p.applying.Lock()
	defer p.applying.Unlock()
	var file *Compiled
	if old := p.table.Load(); old != nil {
		file = old.file
	}
	if err := p.put(t, file); err != nil {
		return fmt.Errorf("proxy: apply version %d: %w", t.Version, err)
	}
	return nil
}

// put puts a topology and a file in force, of which one may be nil. The mutex is held.
func (p *Proxy) put(t *topology.Topology, c *Compiled) error {
	switch {
	case p.closed:
		return errShutDown
	case t == nil && c == nil:
		return errNothing
	}
	began := time.Now()
	old := p.table.Load()
	if old != nil && t != nil && old.topology != nil && old.topology.Config == t.Config && old.topology != t && old.file == c {
		again := *old
		again.topology = t
		p.table.Store(&again)
		p.metrics.applied(&again, time.Since(began))
		return nil
	}
	next, step, err := p.build(old, t, c)
	if err != nil {
		return err
	}
	step.put(p, next)
	if next.site != nil && (old == nil || old.site != next.site) {
		p.limits.know(next.site)
	}
	p.metrics.applied(next, time.Since(began))
	p.report(old, next, step)
	return nil
}

// step is the live part of an Apply.
type step struct {
	changes  []*balance.Change
	fresh    []*balance.Group // of upstreams that were not there before
	alone    map[string]bool  // upstreams whose connections are theirs alone: those of a file
	strands  []*strandEntry   // of which something is new
	joined   int
	left     int
	services map[string]*service
	unused   *site.Site // of a new file: another one was made for what is published beside it; nil: none
}

// build makes the next table and what must happen when it is stored, without touching anything that lives.
func (p *Proxy) build(old *table, t *topology.Topology, c *Compiled) (*table, *step, error) {
	next := &table{proxy: p, topology: t, file: c, applied: time.Now(), hosts: map[string]*paths{}, groups: map[string]*entry{},
		strands: map[string]*strandEntry{}}
	s := &step{services: map[string]*service{}, alone: map[string]bool{}}
	var own *topology.Expanded
	if c != nil {
		var err error
		if own, err = p.addFile(old, next, s); err != nil {
			return nil, nil, err
		}
	}
	if t != nil {
		if err := p.addPublished(old, next, own, s); err != nil {
			return nil, nil, err
		}
	}
	if c != nil {
		next.addHosts(c)
		next.counts = make(map[string]*service, len(next.order)+2)
		for _, name := range append([]string{countedLocal, countedHosts}, next.order...) {
			next.counts[name] = p.services.get(name, s.services)
		}
	}
	if old != nil {
		for name, e := range old.groups {
			if next.groups[name] == nil {
				s.changes = append(s.changes, e.group.Removal())
			}
		}
	}
	if p.book != nil {
		p.book.Sweep()
	}
	return next, s, nil
}

// addFile puts the upstreams of the file into the table, and its site.
func (p *Proxy) addFile(old, next *table, s *step) (*topology.Expanded, error) {
	c := next.file
	expanded, problems := c.expand(next.topology)
	if faults := c.file.faults(problems); faults != nil && (old == nil || old.file != c) {
		return nil, faults
	}
	next.site, next.problems = c.site, problems
	if next.users = newUsers(c.site); old != nil && old.site == c.site {
		next.users = old.users
	}
	next.names = make(map[string]*entry, len(expanded.Upstreams))
	for _, g := range expanded.Upstreams {
		s.alone[g.Name] = true
		if err := p.addGroup(old, next, g, s); err != nil {
			return nil, err
		}
	}
	p.addStrands(old, next, expanded.Upstrands, s)
	return expanded, nil
}

// addPublished puts the upstreams of the topology into the table, but those whose name the file has, and its routes where
// there is no file. own is the file's.
func (p *Proxy) addPublished(old, next *table, own *topology.Expanded, s *step) error {
	expanded, problems := p.expander.Expand(next.topology.Config)
	next.problems = append(next.problems, problems...)
	for _, g := range expanded.Upstreams {
		if next.groups[g.Name] != nil || next.names[strings.ToLower(g.Name)] != nil {
			next.shadowed = append(next.shadowed, g.Name)
			continue
		}
		if err := p.addGroup(old, next, g, s); err != nil {
			return err
		}
	}
	p.addStrands(old, next, expanded.Upstrands, s)
	if next.file == nil {
		p.route(next, expanded, s)
		return nil
	}
	published := asksOf(expanded)
	if next.file.asks.equal(published) {
		return nil
	}
	again := *next.file
	if faults := p.compileSite(&again, own, published); faults != nil {
		return faults
	}
	if old == nil || old.site != next.site {
		s.unused = next.site
	}
	next.file, next.site, next.users = &again, again.site, newUsers(again.site)
	return nil
}

// addGroup gives an upstream its group: the one of before where nothing changed.
func (p *Proxy) addGroup(old, next *table, g *topology.Group, s *step) error {
	var before *entry
	if old != nil {
		before = old.groups[g.Name]
	}
	e, err := p.group(before, g, s)
	if err != nil {
		return err
	}
	next.groups[g.Name] = e
	next.order = append(next.order, g.Name)
	if next.names != nil {
		next.names[strings.ToLower(g.Name)] = e
	}
	return nil
}

func (p *Proxy) group(before *entry, g *topology.Group, s *step) (*entry, error) {
	if before != nil && before.from == g {
		return before, nil
	}
	spec := specOf(g)
	if before == nil {
		group, err := balance.NewGroup(g.Name, balance.Env{Clock: p.clock, Rand: p.config.Rand, Watch: p.config.Watch}, spec)
		if err != nil {
			return nil, err
		}
		s.fresh = append(s.fresh, group)
		return newEntry(g, group), nil
	}
	change, err := before.group.Prepare(spec)
	if err != nil {
		return nil, err
	}
	if change == nil {
		return newEntry(g, before.group), nil
	}
	s.changes = append(s.changes, change)
	return newEntry(g, change.Next), nil
}

func newEntry(g *topology.Group, group *balance.Group) *entry {
	return &entry{from: g, group: group, upstream: site.Upstream{Name: g.Name, Group: group, Spec: g}}
}

// route settles what each route leads to. Routes to one upstream or upstrand share a target.
func (p *Proxy) route(next *table, x *topology.Expanded, s *step) {
	type ref struct{ upstream, upstrand string }
	targets := make(map[ref]*target, len(x.Routes))
	next.routes = make([]route, 0, len(x.Routes))
	for _, r := range x.Routes {
		to := targets[ref{r.Upstream, r.Upstrand}]
		if to == nil {
			to = &target{name: r.Upstream}
			if r.Upstrand != "" {
				to.name, to.strand = r.Upstrand, next.strands[strings.ToLower(r.Upstrand)]
			} else {
				to.group = next.groups[r.Upstream].group
			}
			to.service = p.services.get(to.name, s.services)
			targets[ref{r.Upstream, r.Upstrand}] = to
		}
		next.addRoute(r, to)
	}
}

// put makes the step live: joiners get their connection pools first, then everything changes at once, then those who
// left lose theirs.
func (s *step) put(p *Proxy, next *table) {
	for name := range s.alone {
		p.pools.Keepalive(name, next.groups[name].from.Keepalive)
		p.peers2.Keepalive(name, next.groups[name].from.Keepalive)
	}
	for _, g := range s.fresh {
		s.link(p, g.Name(), g.Peers())
	}
	for _, c := range s.changes {
		s.link(p, c.Next.Name(), c.Joined)
	}
	old := p.table.Load()
	if old != nil && old.site != nil && old.site != next.site {
		p.former.add(old.site.Listens())
	}
	balance.Swap(s.changes, func() {
		for _, e := range s.strands {
			e.upstrand.State.Swap(e.spec)
		}
		p.table.Store(next)
	})
	if old != nil && old.site != nil && old.site != next.site {
		old.users.leave()
		p.openers.forget()
	}
	if s.unused != nil {
		s.unused.Close()
	}
	for _, c := range s.changes {
		s.left += len(c.Left)
		for _, peer := range c.Left {
			p.unlink(peer)
		}
	}
	p.services.set(s.services)
}

func (s *step) link(p *Proxy, upstream string, joined []*balance.Peer) {
	s.joined += len(joined)
	if !s.alone[upstream] {
		upstream = ""
	}
	for _, peer := range joined {
		peer.Link = p.link(http1.PoolKey{
			Server: peer.ID(), Scheme: peer.Scheme(), Addr: peer.Addr(), Incarnation: peer.Incarnation(), Upstream: upstream,
		})
	}
}

func (p *Proxy) report(old, next *table, s *step) {
	line := p.log.Info()
	if next.topology != nil {
		line = line.Int64("version", next.topology.Version).Int64("epoch", next.topology.Epoch)
	}
	if next.file != nil {
		line = line.Str("file", next.file.Name())
	}
	line.Int("upstreams", len(next.groups)).Int("routes", len(next.routes)).
		Int("joined", s.joined).Int("left", s.left).Msg("topology applied")
	told := map[string]bool{} // by the last Apply; what stays is not told again
	if old != nil {
		for _, problem := range old.problems {
			told[problem.Error()] = true
		}
	}
	for _, problem := range next.problems {
		if told[problem.Error()] {
			continue
		}
		p.log.Warn().Str("problem", problem.Error()).Msg("part of the topology can't be used")
	}
}
