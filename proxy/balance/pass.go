package balance

// Result is how an attempt ended, as far as the peer is concerned.
type Result uint8

// The results. They all close the attempt.
const (
	// Succeeded: the peer answered, also when the answer is left for another attempt without being a failure.
	Succeeded Result = iota
	// Broken: a failed attempt.
	Broken
	// Undone: the attempt proves nothing of the peer, since it was not begun or the client left. It costs no try.
	Undone
)

// NoLimit as the limit of Begin leaves the number of tries to the size of the group.
const NoLimit = 0

// Pass is one request's way through one upstream: which peers it has tried, how many tries are left, the attempt that
// is open. It belongs to one goroutine; a value on the stack costs no allocation.
type Pass struct {
	group    *Group
	open     *Peer
	tries    int
	inBackup bool
	marks    marks
}

// Begin starts a request's pass. The number of tries is that of the peers which are not down, passed over or not, and
// at most limit unless that is NoLimit.
func (g *Group) Begin(limit int) Pass {
	tries := g.main.tries + g.backup.tries
	if g.single {
		tries = 1
	}
	if limit != NoLimit {
		tries = min(tries, limit)
	}
	return Pass{group: g, tries: tries}
}

// Tries is the number of attempts that may still end; an open one is among them.
func (p *Pass) Tries() int { return p.tries }

// Pick opens an attempt with the next peer. With nobody to give it returns nil and the most telling reason. The attempt
// that was open must have ended.
func (p *Pass) Pick() (*Peer, Reason) {
	g := p.group
	now := g.clock.second()
	g.shared.mu.Lock()
	peer, why := p.pick(now)
	g.shared.mu.Unlock()
	return peer, why
}

func (p *Pass) pick(now int64) (*Peer, Reason) {
	g := p.group
	if g.single {
		return p.pickSingle(now)
	}
	if !p.inBackup {
		if i := p.choose(&g.main, now); i >= 0 {
			return p.give(g.main.peers, i, now), Eligible
		}
		if len(g.backup.peers) == 0 {
			return nil, p.whyNobody(g.main.peers, now)
		}
		p.inBackup = true
		p.marks = marks{}
	}
	if i := p.choose(&g.backup, now); i >= 0 {
		return p.give(g.backup.peers, i, now), Eligible
	}
	return nil, max(p.whyNobody(g.backup.peers, now), whyAll(g.main.peers, now))
}

// pickSingle gives the only peer unless it is gone, down or full: failures of a single peer mean nothing.
func (p *Pass) pickSingle(now int64) (*Peer, Reason) {
	peer := p.group.main.peers[0]
	if why := peer.why(now); why != Eligible && why != Failed {
		return nil, why
	}
	if peer.maxConns > 0 && peer.conns >= peer.maxConns {
		return nil, Full
	}
	peer.conns++
	p.open = peer
	return peer, Eligible
}

func (p *Pass) give(peers []*Peer, i int, now int64) *Peer {
	p.marks.add(i, len(peers))
	p.open = peers[i]
	p.open.begin(now)
	return p.open
}

// End closes the open attempt. Call it once the last byte of the answer is read, before the write that completes the
// client's answer. Without an open attempt it does nothing.
func (p *Pass) End(r Result) {
	peer, g := p.open, p.group
	if peer == nil {
		return
	}
	p.open = nil
	now := g.clock.second()
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock()
	peer.conns--
	if r == Undone {
		return
	}
	p.tries--
	switch {
	case g.single:
		peer.fails = 0
	case r == Broken:
		peer.failed(now)
	case r == Succeeded:
		peer.succeeded()
	}
}

func (p *Pass) whyNobody(peers []*Peer, now int64) Reason {
	worst := Empty
	for i, peer := range peers {
		why := peer.why(now)
		if why == Eligible && p.marks.has(i) {
			why = Tried
		}
		worst = max(worst, why)
	}
	return worst
}

func whyAll(peers []*Peer, now int64) Reason {
	worst := Empty
	for _, peer := range peers {
		worst = max(worst, peer.why(now))
	}
	return worst
}

// marks is the set of peers already tried, by index. The first few need no memory of their own.
type marks struct {
	few  [4]int32
	n    int32
	many []uint64
}

func (m *marks) add(i, size int) {
	if m.many == nil && int(m.n) < len(m.few) {
		m.few[m.n] = int32(i)
		m.n++
		return
	}
	if m.many == nil {
		m.many = make([]uint64, (size+63)/64)
	}
	m.many[i/64] |= 1 << (i % 64)
}

func (m *marks) has(i int) bool {
	for _, at := range m.few[:m.n] {
		if int(at) == i {
			return true
		}
	}
	return m.many != nil && m.many[i/64]&(1<<(i%64)) != 0
}
