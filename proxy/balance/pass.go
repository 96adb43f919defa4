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
// is open. It belongs to one goroutine. What the end of an attempt needs stands first.
type Pass struct {
	group *Group
	open  *Peer // nil: no attempt is open
	tries int
	began int64 // Unix milliseconds of the open attempt, where times are kept
	head  int64 // from then to the head of the answer; -1 before

	last     *Peer // given last
	ask      *Ask
	explain  *Explanation // filled by the next pick
	given    int          // picks that gave a peer
	inBackup bool
	marks    marks
	memo     Memo
	learn    learning // for sticky
}

// Begin is Pass.Begin in memory of its own: on the stack it costs no allocation.
func (g *Group) Begin(limit int, ask *Ask) Pass {
	return Pass{group: g, tries: g.tries(limit), ask: ask, head: -1}
}

// Begin starts a request's pass through g. The number of tries is that of the peers which are not down, passed over or not,
// and at most limit unless that is NoLimit. A nil ask says nothing; another one is looked at until the last pick. What was
// in p before is forgotten: no attempt of it may be open.
func (p *Pass) Begin(g *Group, limit int, ask *Ask) {
	if p.group != nil {
		*p = Pass{}
	}
	p.group, p.tries, p.ask, p.head = g, g.tries(limit), ask, -1
}

// tries is how many a pass begins with.
func (g *Group) tries(limit int) int {
	n := g.main.tries + g.backup.tries
	if g.single {
		n = 1
	}
	if limit != NoLimit {
		n = min(n, limit)
	}
	return n
}

// Tries is the number of attempts that may still end; an open one is among them.
func (p *Pass) Tries() int { return p.tries }

// Peer is the one given last, nil before the first pick.
func (p *Pass) Peer() *Peer { return p.last }

// Pick is PickAt now.
func (p *Pass) Pick() (*Peer, Reason) { return p.PickAt(p.group.env.Clock()) }

// PickAt opens an attempt with the next peer at a moment that the caller has just read from the clock of the group, in
// Unix nanoseconds: a reading costs as much as all the rest of a pick. With nobody to give it returns nil and the most
// telling reason. The attempt that was open must have ended.
func (p *Pass) PickAt(ns int64) (*Peer, Reason) {
	g := p.group
	s := g.shared
	now := momentAt(ns)
	s.mu.Lock()
	if g.spec.Queue.Most > 0 {
		peer, why := p.inTurn(now)
		s.mu.Unlock()
		return peer, why
	}
	peer, why := p.picked(now)
	s.mu.Unlock()
	return peer, why
}

// inTurn is a pick that does not go before those who wait.
func (p *Pass) inTurn(now moment) (*Peer, Reason) {
	if p.given == 0 && p.group.shared.waiting.n > 0 {
		return nil, Full
	}
	return p.retried(now)
}

// picked is a pick, with its explanation where somebody wants one.
func (p *Pass) picked(now moment) (*Peer, Reason) {
	if p.group.shared.record != nil || p.explain != nil || p.group.env.Watch != nil {
		return p.explained(now)
	}
	return p.pick(now)
}

func (p *Pass) pick(now moment) (*Peer, Reason) {
	g := p.group
	if g.single {
		return p.pickSingle(now)
	}
	if !p.inBackup {
		if i := p.choose(&g.main, now); i >= 0 {
			return p.give(&g.main, i, now), Eligible
		}
		if len(g.backup.peers) == 0 {
			return nil, p.whyNobody(g.main.peers, now)
		}
		p.inBackup = true
		p.marks.clear()
	}
	if i := p.choose(&g.backup, now); i >= 0 {
		return p.give(&g.backup, i, now), Eligible
	}
	return nil, max(p.whyNobody(g.backup.peers, now), whyAll(g.main.peers, now))
}

// pickSingle gives the only peer unless it is gone, down or full: failures of a single peer mean nothing.
func (p *Pass) pickSingle(now moment) (*Peer, Reason) {
	peer := p.group.main.peers[0]
	p.group.shared.round.how = BySingle
	f := peer.flags &^ isFailing
	if f&isDraining != 0 && p.pinnedTo(&p.group.main, now) == 0 {
		f &^= isDraining
	}
	if why := f.why(peer, now.second); why != Eligible {
		return nil, why
	}
	peer.enter()
	return p.attempt(peer, now), Eligible
}

func (p *Pass) give(l *list, i int, now moment) *Peer {
	p.marks.add(i)
	l.peers[i].begin(now.second)
	return p.attempt(l.peers[i], now)
}

// attempt opens one at a peer that counts it already.
func (p *Pass) attempt(peer *Peer, now moment) *Peer {
	p.open, p.last = peer, peer
	p.given++
	p.head = -1
	if p.group.learns() {
		p.learn = learning{}
	}
	if p.group.timing != untimed {
		p.began = now.milli
		peer.times.open(now.milli)
	}
	return peer
}

// Header is HeaderAt now. The clock is read only where somebody wants to know the time.
func (p *Pass) Header() {
	if p.open != nil && p.group.looksAtHeads() {
		p.HeaderAt(p.group.env.Clock())
	}
}

// HeaderAt says that at this moment (see PickAt) the head of an answer had come which will be given to the client, so
// that no other attempt follows. It feeds methods that look at response times and may bind a session.
func (p *Pass) HeaderAt(ns int64) {
	g := p.group
	if p.open == nil || !g.looksAtHeads() {
		return
	}
	milli := momentAt(ns).milli
	first := p.head < 0
	if first {
		p.head = max(milli-p.began, 0)
	}
	binds := g.learns() && g.pins.onHeader
	if g.timing != timedHead && !binds {
		return
	}
	g.shared.mu.Lock()
	if first && g.timing == timedHead {
		p.open.times.answered(p.began)
	}
	if binds {
		g.pins.settle(p, milli)
	}
	g.shared.mu.Unlock()
}

// looksAtHeads reports whether Header and End want to know the time.
func (g *Group) looksAtHeads() bool { return g.timing != untimed || g.learns() }

// End is EndAt now. The clock is read only where somebody wants to know the time: a success changes nothing that has one.
func (p *Pass) End(r Result) {
	if p.open == nil {
		return
	}
	var ns int64
	if r == Broken || p.group.looksAtHeads() {
		ns = p.group.env.Clock()
	}
	p.EndAt(r, ns)
}

// EndAt closes the open attempt at this moment (see PickAt). Call it once the last byte of the answer is read, before the
// write that completes the client's answer. Without an open attempt it does nothing.
func (p *Pass) EndAt(r Result, ns int64) {
	peer, g := p.open, p.group
	if peer == nil {
		return
	}
	s := g.shared
	s.mu.Lock()
	peer.exit()
	if g.timing != untimed {
		p.timeEnd(peer, r, momentAt(ns).milli)
	}
	if r != Undone {
		p.tries--
		p.account(peer, r, ns)
	}
	p.open = nil
	if s.waiting.n > 0 {
		s.serve(g.env.Clock.moment())
	}
	s.mu.Unlock()
}

func (p *Pass) account(peer *Peer, r Result, ns int64) {
	g := p.group
	switch {
	case g.single:
		peer.cleared()
	case r == Broken:
		peer.failed(momentAt(ns).second, g.shared.unit)
	default:
		peer.succeeded()
	}
	if r == Succeeded && g.learns() {
		g.pins.settle(p, momentAt(ns).milli)
	}
}

// timeEnd takes the attempt out of those in flight, and its times into the averages when its answer went to a client.
func (p *Pass) timeEnd(peer *Peer, r Result, milli int64) {
	if p.head < 0 || p.group.timing != timedHead {
		peer.times.answered(p.began)
	}
	if r == Succeeded && p.head >= 0 {
		peer.times.sample(p.head, max(milli-p.began, 0))
	}
}

func (p *Pass) whyNobody(peers []*Peer, now moment) Reason {
	p.marks.show(peers)
	worst := whyAll(peers, now)
	p.marks.hide(peers)
	return worst
}

func whyAll(peers []*Peer, now moment) Reason {
	worst := Empty
	for _, peer := range peers {
		worst = max(worst, peer.why(now.second))
	}
	return worst
}
