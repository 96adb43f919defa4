package balance

// Open is how many attempts are open at the group's peers.
func (g *Group) Open() int {
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock()
	n := 0
	for _, p := range g.peers {
		n += int(p.conns)
	}
	return n
}
