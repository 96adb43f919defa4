package balance

// learning is what a pass knows about the session that its open attempt makes.
type learning struct {
	made bool // there is a key
	key  sessionKey
}

// learns reports whether the group has a table of sessions.
func (g *Group) learns() bool { return g.pins != nil && g.pins.sessions != nil }

// Learn tells the session that the open attempt's answer has made, for sticky learn. From the end of the answer on, or
// from now on where the head is enough, the session is bound to the peer. The bytes may be reused after the call. With
// no session, no open attempt, or without sticky learn it does nothing.
func (p *Pass) Learn(session []byte) {
	g := p.group
	if len(session) == 0 || p.open == nil || !g.learns() {
		return
	}
	p.learn.made, p.learn.key = true, g.pins.sessions.key(session)
	if g.pins.onHeader && p.head >= 0 {
		now := g.env.Clock.moment()
		g.shared.mu.Lock()
		g.pins.settle(p, now.milli)
		g.shared.mu.Unlock()
	}
}

// settle binds the session that the open attempt made to its peer, and also the one that the request came with: an
// answer refreshes a known session, and moves it to who gave the answer. An answer that no client gets binds nothing.
// The upstream's mutex is held.
func (s *pins) settle(p *Pass, milli int64) {
	table := s.sessions
	if p.head < 0 || p.open.Gone() {
		return
	}
	table.expire(milli, s.timeout)
	if p.ask != nil && len(p.ask.Session) > 0 {
		if key := table.key(p.ask.Session); table.peer(key, milli, s.timeout) != nil {
			table.put(key, p.open, milli, s.limit)
		}
	}
	if p.learn.made {
		table.put(p.learn.key, p.open, milli, s.limit)
	}
}
