package upstrand

// View is an upstrand as it stands, for people and metrics.
type View struct {
	Name    string
	Spec    Spec // must not be changed
	Members []MemberView
	Totals  Totals
}

// MemberView is an upstream of a View.
type MemberView struct {
	Name         string
	Backup       bool
	Next         bool  // a request of now starts here, unless it is blacklisted; never with random starts for each request
	BlockedUntil int64 // Unix second from which it is free again; 0: it is not blacklisted
	Counts       Counts
}

// View is what is remembered at a moment: the normal upstreams in their order, then the backup.
func (s *State) View(now int64) View {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.plan.Load()
	v := View{Name: s.name, Spec: p.spec, Totals: s.counts, Members: make([]MemberView, 0, p.size())}
	for i, list := range p.lists {
		for j, m := range list {
			v.Members = append(v.Members, MemberView{
				Name: m.Name, Backup: m.Backup, Next: j == s.turn(p, i), BlockedUntil: m.until(second(now)), Counts: m.kept.counts,
			})
		}
	}
	return v
}

// turn is the place in a list where the next request starts; -1: chance says.
func (s *State) turn(p *plan, list int) int {
	switch {
	case p.spec.PerRequest && p.spec.StartRandom, p.spec.StartRandom && !s.begun[list]:
		return -1
	case p.spec.PerRequest:
		return 0
	}
	return s.cursor[list] % max(len(p.lists[list]), 1)
}
