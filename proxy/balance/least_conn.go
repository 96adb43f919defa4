package balance

// leastConn prefers the peers with the fewest open attempts for their weight.
type leastConn struct{}

// Choose implements Method. The loop looks at the peers itself since it runs for every one of them.
func (leastConn) Choose(r *Round) Verdict {
	kept := r.room()
	n, passed, least, of := 0, 0, 1, 0
	for i, p := range r.peers {
		w := p.full
		if p.flags != 0 {
			if r.closer(p) != Eligible {
				passed++
				continue
			}
			w = p.cap(r.now.milli)
		}
		amount := int(p.conns)
		more := amount*of - least*w
		if more > 0 {
			continue
		}
		if more < 0 {
			kept[0], n, least, of = int32(i), 1, amount, w
			continue
		}
		kept[n] = int32(i)
		n++
	}
	return r.keep(n, passed)
}

// note tells what will be compared.
func (leastConn) note(r *Round) {
	for i, p := range r.peers {
		if r.Eligible(i) == Eligible {
			r.Note(i, float64(p.conns)/float64(p.cap(r.now.milli)))
		}
	}
}

// room is where a method that looks at all peers writes down the best so far: those with the least amount for their weight,
// from 1 for 0 on, which everybody is below of.
func (r *Round) room() []int32 {
	if cap(r.kept) < len(r.peers) {
		r.kept = make([]int32, len(r.peers))
	}
	return r.kept[:len(r.peers)]
}

// keep keeps the first n of room, where so many could not be given, and gives the verdict: nobody's weight moves for a best
// one that has no equal.
func (r *Round) keep(n, passed int) Verdict {
	r.kept = r.kept[:n]
	switch n {
	case 1:
		return Exactly
	case len(r.peers) - passed:
		return Anyone // the same as Among all, and faster
	}
	return Among
}
