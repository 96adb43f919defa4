package balance

import (
	"slices"
	"strings"
)

// Change is a prepared step from one group of an upstream to the next. Preparing it touches nothing that lives; Swap
// puts it in force.
type Change struct {
	Next   *Group
	Joined []*Peer // peers that Next has and the old group has not; give them their Link before the swap
	Left   []*Peer // peers of the old group that are gone once the change is in force

	settings []setting
	heirs    []heir
}

type setting struct {
	peer   *Peer
	server Server
}

// heir takes over the place in the rotation of a process that was started again or moved.
type heir struct{ from, to *Peer }

// Prepare works out the step to these servers and this method. It returns nil when nothing differs, so that an
// unchanged upstream keeps its group; methods are compared with ==, so they are pointers or small values.
func (g *Group) Prepare(servers []Server, m Method) (*Change, error) {
	if m == g.method && slices.Equal(servers, g.servers) {
		return nil, nil
	}
	next := &Group{name: g.name, clock: g.clock, servers: servers, method: m, shared: g.shared}
	next.peers = make([]*Peer, len(servers))
	c := &Change{Next: next}
	if err := c.match(g, servers); err != nil {
		return nil, err
	}
	next.split()
	return c, nil
}

// match finds for each server the peer that it is. Nearly always most of both lists is the same at the front and at the
// back, and only what lies between needs to be looked up.
func (c *Change) match(g *Group, servers []Server) error {
	front := 0
	for front < min(len(servers), len(g.servers)) && servers[front].Key == g.servers[front].Key {
		c.Next.peers[front] = c.carry(g, front, true, servers[front])
		front++
	}
	oldEnd, newEnd := len(g.servers), len(servers)
	for oldEnd > front && newEnd > front && servers[newEnd-1].Key == g.servers[oldEnd-1].Key {
		oldEnd--
		newEnd--
		c.Next.peers[newEnd] = c.carry(g, oldEnd, true, servers[newEnd])
	}
	if err := c.Next.checkKeys(front, newEnd); err != nil {
		return err
	}
	held := make(map[Key]int, oldEnd-front)
	for i := front; i < oldEnd; i++ {
		held[g.servers[i].Key] = i
	}
	for i := front; i < newEnd; i++ {
		at, known := held[servers[i].Key]
		delete(held, servers[i].Key)
		c.Next.peers[i] = c.carry(g, at, known, servers[i])
	}
	for i := front; i < oldEnd; i++ {
		if _, left := held[g.servers[i].Key]; left {
			c.Left = append(c.Left, g.peers[i])
		}
	}
	return nil
}

// carry finds the peer for server s, which stands at place at of the old group when known.
func (c *Change) carry(g *Group, at int, known bool, s Server) *Peer {
	if known && g.servers[at].sameProcess(s) {
		if s != g.servers[at] {
			c.settings = append(c.settings, setting{g.peers[at], s})
		}
		return g.peers[at]
	}
	p := newPeer(s)
	c.Joined = append(c.Joined, p)
	if known {
		c.heirs = append(c.heirs, heir{g.peers[at], p})
		c.Left = append(c.Left, g.peers[at])
	}
	return p
}

// commit puts the change in force. The upstream's mutex is held.
func (c *Change) commit() {
	for _, s := range c.settings {
		old := s.peer.weight
		s.peer.set(s.server)
		if s.peer.weight != old {
			s.peer.rescale(old, s.peer.current, s.peer.effective)
		}
	}
	for _, h := range c.heirs {
		h.to.rescale(h.from.weight, h.from.current, h.from.effective)
	}
	for _, p := range c.Left {
		p.gone.Store(true)
	}
}

// Swap puts changes in force together with what store does, as one step for every picker of these upstreams: nobody
// picks from a new table with old weights, nor from an old one without knowing who is gone. Changes may hold one of each
// upstream, made from its newest group; they are sorted in place.
func Swap(changes []*Change, store func()) {
	locked := make([]*shared, 0, len(changes))
	slices.SortFunc(changes, func(a, b *Change) int { return strings.Compare(a.Next.name, b.Next.name) })
	for _, c := range changes {
		c.Next.shared.mu.Lock()
		locked = append(locked, c.Next.shared)
	}
	for _, c := range changes {
		c.commit()
	}
	store()
	for _, s := range locked {
		s.mu.Unlock()
	}
}

// Removal is the change that takes the whole upstream away: all its peers are gone.
func (g *Group) Removal() *Change {
	next := &Group{name: g.name, clock: g.clock, shared: g.shared}
	return &Change{Next: next, Left: slices.Clone(g.peers)}
}
