package balance

import (
	"errors"
	"fmt"
	"sync"
)

// Group is an upstream's peers as one routing table sees them. It is immutable and safe for concurrent use; a change of
// the upstream makes another group that shares the peers which stayed.
type Group struct {
	name    string
	clock   Clock
	servers []Server // as given, in their order
	peers   []*Peer  // of servers, by index
	main    list
	backup  list
	single  bool // one main peer and no backup: no marks, one try
	method  Method
	shared  *shared
}

// list is the main or the backup part of a group.
type list struct {
	peers []*Peer
	tries int // peers that are neither down nor draining
}

// shared is what all groups of one upstream have in common.
type shared struct {
	mu    sync.Mutex
	round Round // of the pick that holds mu
}

// ErrDuplicateKey is wrapped by errors about two servers of one group with the same key.
var ErrDuplicateKey = errors.New("two servers have the same key")

// NewGroup makes the first group of an upstream. Servers stand in order of declaration, main and backup ones mixed; an
// empty group is valid and never gives a peer. A nil method is plain round robin.
func NewGroup(name string, clock Clock, servers []Server, m Method) (*Group, error) {
	g := &Group{name: name, clock: clock, servers: servers, method: m, shared: &shared{}}
	g.peers = make([]*Peer, len(servers))
	if err := g.checkKeys(0, len(servers)); err != nil {
		return nil, err
	}
	for i, s := range servers {
		g.peers[i] = newPeer(s)
	}
	g.split()
	return g, nil
}

// Name is the upstream's name.
func (g *Group) Name() string { return g.name }

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
	g.single = len(g.main.peers) == 1 && len(g.backup.peers) == 0
}
