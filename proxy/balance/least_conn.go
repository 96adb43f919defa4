package balance

// leastConn prefers the peers with the fewest open attempts for their weight.
type leastConn struct{}

// Choose implements Method. The loop looks at the peers itself, since it runs for every one of them.
func (leastConn) Choose(r *Round) Verdict {
	b := best{kept: r.kept[:0]}
	for i, p := range r.peers {
		w := p.full
		if p.flags != 0 {
			if r.closer(p) != Eligible {
				continue
			}
			w = p.cap(r.now.milli)
		}
		b.add(i, int(p.conns), w)
	}
	return r.keep(b)
}

// note tells what will be compared.
func (leastConn) note(r *Round) {
	for i, p := range r.peers {
		if r.Eligible(i) == Eligible {
			r.Note(i, float64(p.conns)/float64(p.cap(r.now.milli)))
		}
	}
}

// best gathers those with the least amount for their weight.
type best struct {
	kept           []int32
	amount, weight int // of those kept
	all            int // who was looked at
}

func (b *best) add(i, amount, weight int) {
	b.all++
	more := amount*b.weight - b.amount*weight
	if more > 0 {
		return
	}
	if more < 0 || b.weight == 0 {
		b.kept = b.kept[:0]
		b.amount, b.weight = amount, weight
	}
	b.kept = append(b.kept, int32(i))
}

// keep keeps the best and gives the verdict: nobody's weight moves for a best one that has no equal.
func (r *Round) keep(b best) Verdict {
	r.kept = b.kept
	switch len(b.kept) {
	case 1:
		return Exactly
	case b.all:
		return Anyone // the same as Among all, and faster
	}
	return Among
}
