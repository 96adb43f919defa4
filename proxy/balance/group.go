package balance

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Group is an upstream's peers as one routing table sees them. It is immutable and safe for concurrent use; a change of
// the upstream makes another group that shares the peers which stayed.
type Group struct {
	name    string
	env     Env
	spec    Spec
	servers []Server // spec's
	peers   []*Peer  // of servers, by index
	main    list
	backup  list
	single  bool   // one main peer and no backup: no marks, one try
	method  Method // nil: round robin
	pins    *pins  // nil: no sticky
	timing  timing // what the passes measure for it
	shared  *shared
}

// list is the main or the backup part of a group.
type list struct {
	peers []*Peer
	tries int // peers that are neither down nor draining
}

// shared is what all groups of one upstream have in common.
type shared struct {
	mu     sync.Mutex
	unit   int       // what a weight of one counts; the same for all peers that are not gone
	round  Round     // of the pick that holds mu
	record *recorder // nil: picks are not recorded

	waiting waiting
}

// ErrDuplicateKey is wrapped by errors about two servers of one group with the same key.
var ErrDuplicateKey = errors.New("two servers have the same key")

// NewGroup makes the first group of an upstream; one without servers is valid and never gives a peer. It fails when two
// servers have the same key, and for a method or a way of sticky that does not exist.
func NewGroup(name string, env Env, spec Spec) (*Group, error) {
	g := &Group{name: name, env: env.filled(), shared: &shared{unit: unitOf(spec.Servers)}}
	g.take(spec)
	if err := g.checkKeys(0, len(g.servers)); err != nil {
		return nil, err
	}
	all := make([]Peer, len(g.servers)) // in one piece: a pick walks over them
	for i, s := range g.servers {
		all[i].init(s, g.shared.unit)
		g.peers[i] = &all[i]
	}
	g.split()
	if err := g.equip(nil); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Group) take(spec Spec) {
	g.spec, g.servers = spec, spec.Servers
	g.peers = make([]*Peer, len(spec.Servers))
}

// equip gives a group that has its peers its method and its sticky part: those of the group before, where the spec has
// not changed.
func (g *Group) equip(before *Group) error {
	fresh := before == nil || before.spec.Method != g.spec.Method
	if fresh {
		m, err := newMethod(g.spec.Method)
		if err != nil {
			return fmt.Errorf("balance: upstream %s: %w", g.name, err)
		}
		g.method = m
	} else {
		g.method = before.method
	}
	if b, ok := g.method.(Builder); ok && (fresh || !slices.Equal(before.servers, g.servers)) {
		g.method = b.Build(g.mainServers())
	}
	g.timing = timingOf(g.method)
	var old *pins
	if before != nil {
		old = before.pins
	}
	g.pins = newPins(g.spec.Sticky, g.servers, g.peers, old)
	return nil
}

func (g *Group) mainServers() []Server {
	if len(g.backup.peers) == 0 {
		return g.servers
	}
	main := make([]Server, 0, len(g.main.peers))
	for _, s := range g.servers {
		if !s.Key.Backup {
			main = append(main, s)
		}
	}
	return main
}

// Name is the upstream's name.
func (g *Group) Name() string { return g.name }

// Spec is what the group was made of. It must not be changed.
func (g *Group) Spec() Spec { return g.spec }

// Servers gives the servers that the group was made of. It must not be changed.
func (g *Group) Servers() []Server { return g.servers }

// Peers gives the peers in the order of Servers. It must not be changed.
func (g *Group) Peers() []*Peer { return g.peers }

// checkKeys looks for a key of servers[from:to] that stands twice. The others are known to be distinct.
func (g *Group) checkKeys(from, to int) error {
	if from == to {
		return nil
	}
	seen := make(map[Key]struct{}, to-from)
	for _, s := range g.servers[from:to] {
		if _, dup := seen[s.Key]; dup {
			return fmt.Errorf("balance: upstream %s: %w: %+v", g.name, ErrDuplicateKey, s.Key)
		}
		seen[s.Key] = struct{}{}
	}
	for i, s := range g.servers {
		if i >= from && i < to {
			continue
		}
		if _, dup := seen[s.Key]; dup {
			return fmt.Errorf("balance: upstream %s: %w: %+v", g.name, ErrDuplicateKey, s.Key)
		}
	}
	return nil
}

// split sorts the peers into main and backup and settles what a pick need not count.
func (g *Group) split() {
	for i, s := range g.servers {
		l := &g.main
		if s.Key.Backup {
			l = &g.backup
		}
		l.peers = append(l.peers, g.peers[i])
		if !s.Down && !s.Drain {
			l.tries++
		}
	}
	g.single = len(g.main.peers) == 1 && len(g.backup.peers) == 0 && !g.spec.CountSingle
}
