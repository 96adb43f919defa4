package balance

// marks is the set of peers already tried, by index. The first few need no memory of their own.
type marks struct {
	few  [4]int32
	n    int32
	many []int32
}

func (m *marks) add(i int) {
	if int(m.n) < len(m.few) {
		m.few[m.n] = int32(i)
		m.n++
		return
	}
	m.many = append(m.many, int32(i))
}

func (m *marks) clear() { m.n, m.many = 0, m.many[:0] }

// show flags the peers for the pick under way, so that a pick asks for marks no more than for anything else; hide takes
// that back before the upstream's mutex is let go.
func (m *marks) show(peers []*Peer) {
	for _, i := range m.few[:m.n] {
		peers[i].flags |= isTried
	}
	for _, i := range m.many {
		peers[i].flags |= isTried
	}
}

func (m *marks) hide(peers []*Peer) {
	for _, i := range m.few[:m.n] {
		peers[i].flags &^= isTried
	}
	for _, i := range m.many {
		peers[i].flags &^= isTried
	}
}
