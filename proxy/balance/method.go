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
)

// Method orders the candidates of a pick. It only says whom it likes best: eligibility, failures, connections and the
// arithmetic of ties are the same for all. Choose runs under the upstream's mutex, must not block, and should not
// allocate. A method belongs to one upstream and may keep state of its own; the same value must be given to Prepare to
// keep it over a change.
type Method interface {
	Choose(r *Round) Verdict
}

// Round is one pick in the main or the backup part of a group. It is valid during Choose only.
type Round struct {
	peers []*Peer
	marks marks // a copy: a pass must not come to lie in memory because a method looks at it
	now   int64
	kept  []int32
}

// Len is the number of peers in the part, eligible or not.
func (r *Round) Len() int { return len(r.peers) }

// Eligible tells whether peer i may be given: Eligible, or the reason why not.
func (r *Round) Eligible(i int) Reason {
	if r.marks.n > 0 && r.marks.has(i) {
		return Tried
	}
	return r.peers[i].why(r.now)
}

// Weight is peer i's weight as declared, at least 1.
func (r *Round) Weight(i int) int { return r.peers[i].weight }

// Conns is the number of peer i's open attempts.
func (r *Round) Conns(i int) int { return r.peers[i].conns }

// Peer is peer i itself, for what never changes about it.
func (r *Round) Peer(i int) *Peer { return r.peers[i] }

// Keep adds an eligible peer to those kept.
func (r *Round) Keep(i int) { r.kept = append(r.kept, int32(i)) }

// Reset empties those kept.
func (r *Round) Reset() { r.kept = r.kept[:0] }

// choose gives the index of the peer to take from l, or -1.
func (p *Pass) choose(l *list, now int64) int {
	if p.group.method == nil {
		return p.roundRobin(l.peers, now)
	}
	r := &p.group.shared.round
	*r = Round{peers: l.peers, marks: p.marks, now: now, kept: r.kept[:0]}
	chosen := -1
	switch p.group.method.Choose(r) {
	case Anyone:
		chosen = p.roundRobin(l.peers, now)
	case Among:
		chosen = roundRobinAmong(l.peers, r.kept)
	case Exactly:
		if len(r.kept) > 0 {
			chosen = int(r.kept[0])
		}
	}
	r.peers, r.marks = nil, marks{}
	return chosen
}

// roundRobin is one pick of smooth weighted round robin over the eligible peers. It stands here in one piece, twice,
// because it is the hot loop: what is added is the effective weight before its recovery by one.
func (p *Pass) roundRobin(peers []*Peer, now int64) int {
	best, total := -1, 0
	tried := p.marks.n > 0
	for i, peer := range peers {
		if tried && p.marks.has(i) || peer.why(now) != Eligible {
			continue
		}
		total += peer.turn()
		if best < 0 || peer.current > peers[best].current {
			best = i
		}
	}
	if best >= 0 {
		peers[best].current -= total
	}
	return best
}

func roundRobinAmong(peers []*Peer, kept []int32) int {
	best, total := -1, 0
	for _, k := range kept {
		i := int(k)
		total += peers[i].turn()
		if best < 0 || peers[i].current > peers[best].current {
			best = i
		}
	}
	if best >= 0 {
		peers[best].current -= total
	}
	return best
}

// turn lets the peer take part in a pick and returns what it adds to the total.
func (p *Peer) turn() int {
	e := p.effective
	p.current += e
	if e < p.weight {
		p.effective++
	}
	return e
}
