package balance

// Round is one pick in the main or the backup part of a group, as a method sees it. It is valid during Choose only.
type Round struct {
	rand   func() uint64
	peers  []*Peer
	backup bool
	now    moment
	ask    *Ask
	memo   Memo // a copy: a pass must not come to lie in memory because a method looks at it
	kept   []int32
	how    How
	noting bool   // the pick is being recorded
	notes  []note // of it
}

// Memo is what a method remembers from one pick of a pass to the next. What is in it is the method's own affair; it
// begins as zero.
type Memo struct {
	A, B, C uint32
	Tries   uint8
	Set     bool
}

type note struct {
	backup bool
	index  int32
	key    float64
}

var nothingAsked Ask

// Len is the number of peers in the part, eligible or not.
func (r *Round) Len() int { return len(r.peers) }

// Backup reports whether the part is the backup one.
func (r *Round) Backup() bool { return r.backup }

// Eligible tells whether peer i may be given: Eligible, or the reason why not.
func (r *Round) Eligible(i int) Reason {
	if p := r.peers[i]; p.flags != 0 {
		return r.closer(p)
	}
	return Eligible
}

// closer is kept out of Eligible, so that the usual case is inlined.
//
//go:noinline
func (r *Round) closer(p *Peer) Reason { return p.flags.why(p, r.now.second) }

// Pinned is Eligible for a session that is bound to peer i, which a draining peer still takes.
func (r *Round) Pinned(i int) Reason {
	p := r.peers[i]
	return (p.flags &^ isDraining).why(p, r.now.second)
}

// Weight is peer i's weight as declared, at least 1.
func (r *Round) Weight(i int) int { return r.peers[i].weight }

// Conns is the number of peer i's open attempts.
func (r *Round) Conns(i int) int { return int(r.peers[i].conns) }

// Ask is what the request wants; never nil.
func (r *Round) Ask() *Ask { return r.ask }

// Memo is what the method remembers of the pass.
func (r *Round) Memo() *Memo { return &r.memo }

// Rand is uniform over all 64 bits.
func (r *Round) Rand() uint64 { return r.rand() }

// Millis is the moment of the pick in Unix milliseconds.
func (r *Round) Millis() int64 { return r.now.milli }

// Keep adds an eligible peer to those kept.
func (r *Round) Keep(i int) { r.kept = append(r.kept, int32(i)) }

func (r *Round) note(m Method) {
	if n, ok := m.(noter); ok {
		n.note(r)
	}
}

// Note tells by what number peer i is compared, for people: the least is the best.
func (r *Round) Note(i int, key float64) {
	r.notes = append(r.notes, note{r.backup, int32(i), key})
}
