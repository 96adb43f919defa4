package balance

import (
	"testing"
	"time"
)

// refPeer, refGroup and refPass are picking once more, as plainly as its rules can be written down, to be compared with
// the real one. They share nothing with it but the parameters of a server.
type refPeer struct {
	Server
	cw, ew, fails, conns int
	accessed, checked    int64
	gone                 bool
}

type refGroup struct {
	main, backup []*refPeer
	leastConn    bool
	countSingle  bool
}

type refPass struct {
	g        *refGroup
	tried    map[*refPeer]bool
	inBackup bool
	tries    int
	open     *refPeer
}

func (p *refPeer) window() int64 { return int64(p.FailTimeout / time.Second) }

func (p *refPeer) mayTake(now int64) bool {
	if p.gone || p.Down || p.Drain {
		return false
	}
	if p.MaxFails > 0 && p.fails >= p.MaxFails && now-p.checked <= p.window() {
		return false
	}
	return p.MaxConns == 0 || p.conns < p.MaxConns
}

func (g *refGroup) single() bool { return len(g.main) == 1 && len(g.backup) == 0 && !g.countSingle }

func (g *refGroup) begin(limit int) *refPass {
	tries := 0
	for _, p := range append(append([]*refPeer{}, g.main...), g.backup...) {
		if !p.Down && !p.Drain {
			tries++
		}
	}
	if g.single() {
		tries = 1
	}
	if limit > 0 && limit < tries {
		tries = limit
	}
	return &refPass{g: g, tried: map[*refPeer]bool{}, tries: tries}
}

func (r *refPass) pick(now int64) *refPeer {
	if r.g.single() {
		p := r.g.main[0]
		if p.gone || p.Down || p.Drain || p.MaxConns > 0 && p.conns >= p.MaxConns {
			return nil
		}
		p.conns++
		r.open = p
		return p
	}
	var won *refPeer
	if !r.inBackup {
		won = r.from(r.g.main, now)
		if won == nil && len(r.g.backup) > 0 {
			r.inBackup, r.tried = true, map[*refPeer]bool{}
		}
	}
	if r.inBackup {
		won = r.from(r.g.backup, now)
	}
	if won == nil {
		return nil
	}
	if now-won.checked > won.window() {
		won.checked = now
	}
	won.conns++
	r.tried[won], r.open = true, won
	return won
}

func (r *refPass) from(list []*refPeer, now int64) *refPeer {
	var can []*refPeer
	for _, p := range list {
		if !r.tried[p] && p.mayTake(now) {
			can = append(can, p)
		}
	}
	if r.g.leastConn {
		var least []*refPeer
		for _, p := range can {
			switch {
			case len(least) == 0 || p.conns*least[0].weight() < least[0].conns*p.weight():
				least = []*refPeer{p}
			case p.conns*least[0].weight() == least[0].conns*p.weight():
				least = append(least, p)
			}
		}
		if len(least) == 1 {
			return least[0]
		}
		can = least
	}
	var best *refPeer
	total := 0
	for _, p := range can {
		p.cw += p.ew
		total += p.ew
		if p.ew < p.weight() {
			p.ew++
		}
		if best == nil || p.cw > best.cw {
			best = p
		}
	}
	if best != nil {
		best.cw -= total
	}
	return best
}

func (r *refPass) end(how Result, now int64) {
	p := r.open
	r.open = nil
	p.conns--
	if how == Undone {
		return
	}
	r.tries--
	switch {
	case r.g.single():
		p.fails = 0
	case how == Broken:
		p.fails++
		p.accessed, p.checked = now, now
		if p.MaxFails > 0 {
			p.ew = max(p.ew-p.weight()/p.MaxFails, 0)
		}
	case p.accessed < p.checked:
		p.fails = 0
	}
}

// swap is what a change of the topology does to the state.
func (g *refGroup) swap(servers []Server) *refGroup {
	old := map[Key]*refPeer{}
	for _, p := range append(append([]*refPeer{}, g.main...), g.backup...) {
		old[p.Key] = p
	}
	next := &refGroup{leastConn: g.leastConn, countSingle: g.countSingle}
	for _, s := range servers {
		p := old[s.Key]
		delete(old, s.Key)
		switch {
		case p == nil:
			p = &refPeer{Server: s, ew: s.weight()}
		case p.Addr != s.Addr || p.Incarnation != s.Incarnation:
			q := &refPeer{Server: s}
			q.cw, q.ew = rescaled(p, s.weight())
			p.gone = true
			p = q
		default:
			p.cw, p.ew = rescaled(p, s.weight())
			p.Server = s
		}
		if s.Key.Backup {
			next.backup = append(next.backup, p)
		} else {
			next.main = append(next.main, p)
		}
	}
	for _, p := range old {
		p.gone = true
	}
	return next
}

func rescaled(p *refPeer, w int) (cw, ew int) {
	if p.ew == p.weight() {
		return p.cw * w / p.weight(), w
	}
	return p.cw * w / p.weight(), min(p.ew, w)
}

type refState struct {
	id                               string
	current, effective, fails, conns int
}

func (g *refGroup) same(t *testing.T, what string, peers []PeerState, unit int) {
	t.Helper()
	at := map[bool]int{}
	for _, got := range peers {
		list := g.main
		if got.Backup {
			list = g.backup
		}
		p := list[at[got.Backup]]
		at[got.Backup]++
		want := refState{p.Key.ID, p.cw * unit, p.ew * unit, p.fails, p.conns}
		if have := (refState{got.ID, got.Current, got.Effective, got.Fails, got.Conns}); have != want {
			t.Fatalf("%s: %+v, want %+v", what, have, want)
		}
	}
}
