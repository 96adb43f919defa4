package balance

import "math/bits"

// random draws a main server, each with the chance of its weight.
type random struct {
	two    bool // draws two, and takes the one with fewer open attempts for its weight
	ranges ranges
}

// Build implements Builder.
func (m *random) Build(main []Server) Method { return &random{m.two, newRanges(main)} }

// Choose implements Method. Of two that are equally busy the second is taken.
func (m *random) Choose(r *Round) Verdict {
	if r.unfit() {
		return Anyone
	}
	memo := r.Memo()
	first := -1
	for {
		i := m.draw(r)
		if i == first || r.Eligible(i) != Eligible {
			if memo.giveUp() {
				return Anyone
			}
			continue
		}
		if m.two && first < 0 {
			first = i
			continue
		}
		if first >= 0 && r.Conns(i)*r.Weight(first) > r.Conns(first)*r.Weight(i) {
			i = first
		}
		r.Keep(i)
		return Exactly
	}
}

// draw gives any server, eligible or not.
func (m *random) draw(r *Round) int {
	x, _ := bits.Mul64(r.Rand(), m.ranges.total)
	return m.ranges.at(x)
}
