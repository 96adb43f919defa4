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

	unit     int // of Next's weights
	settings []setting
	heirs    []heir
}

type setting struct {
	peer   *Peer
	server Server
}

// heir takes over the place in the rotation of a process that was started again or moved.
type heir struct{ from, to *Peer }

// Prepare works out the step to this spec. It returns nil when nothing differs, so that an unchanged upstream keeps its
// group. A method and a way of sticky whose spec has not changed keep what they know.
func (g *Group) Prepare(spec Spec) (*Change, error) {
	if spec.Method == g.spec.Method && spec.Sticky == g.spec.Sticky && spec.CountSingle == g.spec.CountSingle && spec.Queue == g.spec.Queue &&
		slices.Equal(spec.Servers, g.servers) {
		return nil, nil
	}
	next := &Group{name: g.name, env: g.env, shared: g.shared}
	next.take(spec)
	c := &Change{Next: next, unit: unitOf(spec.Servers)}
	if err := c.match(g, spec.Servers); err != nil {
		return nil, err
	}
	next.split()
	if err := next.equip(g); err != nil {
		return nil, err
	}
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
	p := newPeer(s, c.unit)
	c.Joined = append(c.Joined, p)
	if known {
		c.heirs = append(c.heirs, heir{g.peers[at], p})
		c.Left = append(c.Left, g.peers[at])
	}
	return p
}

// commit puts the change in force. The upstream's mutex is held.
func (c *Change) commit() {
	now := c.Next.env.Clock.moment()
	c.commitUnit()
	for _, s := range c.settings {
		s.peer.change(s.server, c.unit, now.milli)
	}
	for _, h := range c.heirs {
		h.to.rescale(h.from.full, h.from.current, h.from.effective)
	}
	for _, p := range c.Joined {
		p.ramp(now.milli)
	}
	for _, p := range c.Left {
		p.leave()
	}
}

// commitUnit is for the first or the last slow_start of an upstream: all its peers change over together.
func (c *Change) commitUnit() {
	s := c.Next.shared
	if c.unit == s.unit {
		return
	}
	s.unit = c.unit
	joined := make(map[*Peer]bool, len(c.Joined))
	for _, p := range c.Joined {
		joined[p] = true
	}
	for _, p := range c.Next.peers {
		if !joined[p] {
			p.toUnit(c.unit)
		}
	}
	for _, p := range c.Left {
		p.toUnit(c.unit)
	}
}

func (p *Peer) toUnit(unit int) {
	old := p.full
	p.full = p.weight * unit
	p.effective = scaled(p.effective, p.full, old)
	p.current = scaled(p.current, p.full, old)
}

// change takes over other parameters for the same process.
func (p *Peer) change(s Server, unit int, milli int64) {
	old, wasDown := p.full, p.flags&isDown != 0
	p.set(s, unit)
	if p.full != old {
		p.rescale(old, p.current, p.effective)
	}
	if wasDown && !s.Down {
		p.ramp(milli)
	}
	p.rampSooner(milli)
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
	for _, c := range changes {
		if s := c.Next.shared; s.waiting.n > 0 { // now that the table is there which they may go on in
			s.waiting.moveTo(c.Next)
			s.serve(c.Next.env.Clock.moment())
		}
	}
	for _, s := range locked {
		s.mu.Unlock()
	}
}

// Removal is the change that takes the whole upstream away: all its peers are gone.
func (g *Group) Removal() *Change {
	next := &Group{name: g.name, env: g.env, shared: g.shared}
	return &Change{Next: next, unit: unitOf(g.servers), Left: slices.Clone(g.peers)}
}
