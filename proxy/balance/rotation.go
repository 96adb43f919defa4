package balance

import "math"

// roundRobin is one pick of smooth weighted round robin over the eligible peers; -1 when there are none. Each one's
// effective weight is added to its current one, and only then recovers by one; the first with the greatest current
// weight is taken and pays what all have got. The loop stands in one piece because it is the hot one.
func roundRobin(peers []*Peer, now moment, unit int) int {
	best, top, total := -1, math.MinInt, 0
	for i, p := range peers {
		e := p.effective
		if p.flags != 0 {
			if p.flags.why(p, now.second) != Eligible {
				continue
			}
			e = p.ramped(now.milli)
		}
		if p.effective < p.full {
			p.effective += unit
		}
		total += e
		p.current += e
		if p.current > top {
			best, top = i, p.current
		}
	}
	if best >= 0 {
		peers[best].current -= total
	}
	return best
}

// roundRobinAmong is the same among those kept, which are eligible; the others' weights do not move.
func roundRobinAmong(peers []*Peer, kept []int32, now moment, unit int) int {
	best, top, total := -1, math.MinInt, 0
	for _, k := range kept {
		p := peers[k]
		e := p.effective
		if p.flags != 0 {
			e = p.ramped(now.milli)
		}
		if p.effective < p.full {
			p.effective += unit
		}
		total += e
		p.current += e
		if p.current > top {
			best, top = int(k), p.current
		}
	}
	if best >= 0 {
		peers[best].current -= total
	}
	return best
}

// charge lets peer i pay for a turn that round robin did not come to. A peer that is that much in debt pays no more:
// its session may use it as often as it likes.
func charge(peers []*Peer, i int, now moment, unit int) {
	payer := peers[i]
	all := 0
	for _, p := range peers {
		all += p.full
	}
	if payer.current <= -(all - payer.full) {
		return
	}
	total := 0
	for k, p := range peers {
		if k == i || p.why(now.second) == Eligible {
			total += p.turn(now.milli, unit)
		}
	}
	payer.current -= total
}

// turn lets the peer take part in a pick and returns what it adds to the total.
func (p *Peer) turn(milli int64, unit int) int {
	e := p.effective
	if p.flags&isRamping != 0 {
		e = p.ramped(milli)
	}
	if p.effective < p.full {
		p.effective += unit
	}
	p.current += e
	return e
}
