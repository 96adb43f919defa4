package balance

// Verdict is what a method makes of a round.
type Verdict uint8

// The verdicts.
const (
	// Anyone: the method has no preference, smooth round robin decides among all eligible peers.
	Anyone Verdict = iota
	// Among: smooth round robin decides among those kept; the others' weights do not move.
	Among
	// Exactly: the first one kept is it, and no weight moves.
	Exactly
	// Charged: the first one kept is it, and it pays for the turn as if round robin had come to it.
	Charged
)

// Method orders the candidates of a pick. It only says whom it likes best: eligibility, failures, connections and the
// arithmetic of ties are the same for all. Choose runs under the upstream's mutex, must not block, and should not
// allocate. A method belongs to one upstream and may keep state of its own.
type Method interface {
	Choose(r *Round) Verdict
}

// Builder is a method that prepares something from the list of main servers. Build is called for the first group and
// whenever the servers changed, outside of any lock; it gives the value that the next group uses, and the receiver stays
// with the groups that have it.
type Builder interface {
	Method
	Build(main []Server) Method
}

// noter is a method that compares peers by a number. Of a pick that is recorded note tells the numbers by Round.Note,
// just before Choose, and changes nothing: so Choose itself need not know of it.
type noter interface{ note(r *Round) }

// choose gives the index of the peer to take from l, or -1. The upstream's mutex is held. Those tried are flagged as long
// as it looks.
func (p *Pass) choose(l *list, now moment) (chosen int) {
	if p.marks.n > 0 {
		p.marks.show(l.peers)
	}
	g := p.group
	r := &g.shared.round
	r.how = ByWeight
	if g.method == nil && g.pins == nil {
		chosen = roundRobin(l.peers, now, g.shared.unit)
	} else {
		p.arrange(r, l, now)
		chosen = r.settle(g)
		p.memo = r.memo
		r.leave()
	}
	if p.marks.n > 0 {
		p.marks.hide(l.peers)
	}
	return chosen
}

// pinnedTo is the index of the peer in l that the request's session is bound to and that may be given, or -1.
func (p *Pass) pinnedTo(l *list, now moment) int {
	r := &p.group.shared.round
	p.arrange(r, l, now)
	i := p.group.pinned(r)
	r.leave()
	return i
}

func (p *Pass) arrange(r *Round, l *list, now moment) {
	r.peers, r.backup, r.now = l.peers, p.inBackup, now
	r.rand, r.ask, r.memo, r.kept = p.group.env.Rand, p.ask, p.memo, r.kept[:0]
	if r.ask == nil {
		r.ask = &nothingAsked
	}
}

// leave forgets what belongs to a group or a request: the round outlives both.
func (r *Round) leave() { r.peers, r.ask = nil, nil }

// settle asks whom the session is bound to, then the method, and carries out what they say.
func (r *Round) settle(g *Group) int {
	verdict := Anyone
	if i := g.pinned(r); i >= 0 {
		r.how, r.kept = BySession, append(r.kept[:0], int32(i))
		verdict = Exactly
		if g.method == nil {
			verdict = Charged
		}
	} else if g.method != nil {
		if r.noting {
			r.note(g.method)
		}
		verdict = g.method.Choose(r)
	}
	switch {
	case verdict == Anyone:
		return roundRobin(r.peers, r.now, g.shared.unit)
	case len(r.kept) == 0:
		return -1
	case verdict == Among:
		r.how = ByTie
		return roundRobinAmong(r.peers, r.kept, r.now, g.shared.unit)
	case verdict == Charged:
		charge(r.peers, int(r.kept[0]), r.now, g.shared.unit)
	}
	if r.how != BySession {
		r.how = ByMethod
	}
	return int(r.kept[0])
}

func (g *Group) pinned(r *Round) int {
	if g.pins == nil {
		return -1
	}
	return g.pins.find(r)
}
