package proxy

import (
	"errors"
	"fmt"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/nethttp"
)

// errNoConfig: a topology without content can't be applied; an empty Config can.
var errNoConfig = errors.New("proxy: apply: the topology has no config")

// Apply puts a topology in force. All that can fail comes before the first live change; on an error the last topology
// stays. When it returns, no new request and no retry goes to a peer that left. Calls are serialised; whether a version
// may follow the one in force is for the caller to know.
func (p *Proxy) Apply(t *topology.Topology) error {
	if t == nil || t.Config == nil {
		return errNoConfig
	}
	p.applying.Lock()
	defer p.applying.Unlock()
	if p.closed {
		return errShutDown
	}
	began := time.Now()
	old := p.table.Load()
	if old != nil && old.topology.Config == t.Config {
		again := *old
		again.topology = t
		p.table.Store(&again)
		p.metrics.applied(&again, time.Since(began))
		return nil
	}
	next, step, err := p.build(old, t)
	if err != nil {
		return fmt.Errorf("proxy: apply version %d: %w", t.Version, err)
	}
	step.put(p, next)
	p.metrics.applied(next, time.Since(began))
	p.report(old, next, step)
	return nil
}

// step is the live part of an Apply.
type step struct {
	changes  []*balance.Change
	fresh    []*balance.Group // of upstreams that were not there before
	joined   int
	left     int
	services map[string]*service
}

// build makes the next table and what must happen when it is stored, without touching anything that lives.
func (p *Proxy) build(old *table, t *topology.Topology) (*table, *step, error) {
	expanded, problems := p.expander.Expand(t.Config)
	next := &table{topology: t, applied: time.Now(), hosts: map[string]*paths{}, problems: problems,
		groups: make(map[string]*entry, len(expanded.Upstreams))}
	s := &step{services: map[string]*service{}}
	for _, g := range expanded.Upstreams {
		var before *entry
		if old != nil {
			before = old.groups[g.Name]
		}
		e, err := p.group(before, g, s)
		if err != nil {
			return nil, nil, err
		}
		next.groups[g.Name] = e
	}
	if old != nil {
		for name, e := range old.groups {
			if next.groups[name] == nil {
				s.changes = append(s.changes, e.group.Removal())
			}
		}
	}
	p.route(next, expanded, s)
	return next, s, nil
}

func (p *Proxy) group(before *entry, g *topology.Group, s *step) (*entry, error) {
	if before != nil && before.from == g {
		return before, nil
	}
	servers := serversOf(g)
	if before == nil {
		group, err := balance.NewGroup(g.Name, p.clock, servers, nil)
		if err != nil {
			return nil, err
		}
		s.fresh = append(s.fresh, group)
		return &entry{from: g, group: group}, nil
	}
	change, err := before.group.Prepare(servers, nil)
	if err != nil {
		return nil, err
	}
	if change == nil {
		return &entry{from: g, group: before.group}, nil
	}
	s.changes = append(s.changes, change)
	return &entry{from: g, group: change.Next}, nil
}

func serversOf(g *topology.Group) []balance.Server {
	out := make([]balance.Server, len(g.Peers))
	for i := range g.Peers {
		peer := &g.Peers[i]
		out[i] = balance.Server{
			Key:  balance.Key{Backup: peer.Backup, ID: peer.Key.Server, Addr: peer.Key.Addr, Ordinal: peer.Key.Ordinal},
			Addr: peer.Addr, Scheme: peer.Scheme, Incarnation: peer.Incarnation,
			Weight: peer.Weight, MaxConns: peer.MaxConns, MaxFails: peer.MaxFails, FailTimeout: peer.FailTimeout,
			Down: peer.Down, Drain: peer.Drain,
		}
	}
	return out
}

// route settles what each route leads to. Routes to one upstream or upstrand share a target.
func (p *Proxy) route(next *table, x *topology.Expanded, s *step) {
	strands := make(map[string]*topology.Strand, len(x.Upstrands))
	for _, strand := range x.Upstrands {
		strands[strand.Name] = strand
	}
	type ref struct{ upstream, upstrand string }
	targets := make(map[ref]*target, len(x.Routes))
	next.routes = make([]route, 0, len(x.Routes))
	for _, r := range x.Routes {
		to := targets[ref{r.Upstream, r.Upstrand}]
		if to == nil {
			to = &target{name: r.Upstream, stops: walk(next, r, strands[r.Upstrand])}
			if r.Upstrand != "" {
				to.name = r.Upstrand
			}
			to.service = p.services.get(to.name, s.services)
			targets[ref{r.Upstream, r.Upstrand}] = to
		}
		next.addRoute(r, to)
	}
}

// walk is the order in which a route's upstreams are tried: an upstrand's own ones, then its backup.
func walk(t *table, r topology.Route, strand *topology.Strand) []*balance.Group {
	if strand == nil {
		return []*balance.Group{t.groups[r.Upstream].group}
	}
	stops := make([]*balance.Group, 0, len(strand.Members))
	for _, backup := range []bool{false, true} {
		for _, m := range strand.Members {
			if m.Backup == backup {
				stops = append(stops, t.groups[m.Upstream].group)
			}
		}
	}
	return stops
}

// put makes the step live: joiners get their connection pools first, then everything changes at once, then those who
// left lose theirs.
func (s *step) put(p *Proxy, next *table) {
	for _, g := range s.fresh {
		s.link(p, g.Peers())
	}
	for _, c := range s.changes {
		s.link(p, c.Joined)
	}
	balance.Swap(s.changes, func() { p.table.Store(next) })
	for _, c := range s.changes {
		s.left += len(c.Left)
		for _, peer := range c.Left {
			p.pools.Release(peer.Link.(*nethttp.Pool))
		}
	}
	p.services.set(s.services)
}

func (s *step) link(p *Proxy, joined []*balance.Peer) {
	s.joined += len(joined)
	for _, peer := range joined {
		peer.Link = p.pools.Acquire(nethttp.PoolKey{
			Server: peer.ID(), Scheme: peer.Scheme(), Addr: peer.Addr(), Incarnation: peer.Incarnation(),
		})
	}
}

func (p *Proxy) report(old, next *table, s *step) {
	p.log.Info().Int64("version", next.topology.Version).Int64("epoch", next.topology.Epoch).
		Int("upstreams", len(next.groups)).Int("routes", len(next.routes)).
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
