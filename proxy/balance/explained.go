package balance

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// explained is a snapshot, the ordinary pick, and a snapshot. The upstream's mutex is held.
func (p *Pass) explained(now moment) (*Peer, Reason) {
	g := p.group
	e := &Explanation{Time: time.UnixMilli(now.milli).UTC(), Upstream: g.name, Method: g.spec.Method.String(),
		Try: p.given + 1, Unit: g.shared.unit}
	v := view{e: e, pass: p, now: now, round: &g.shared.round}
	if !p.inBackup {
		v.main = g.main.peers
	}
	v.round.noting, v.round.notes = true, v.round.notes[:0]
	v.before(g.backup.peers)
	peer, why := p.pick(now)
	v.round.noting = false
	v.after(peer, why)
	if g.shared.record != nil {
		g.shared.record.add(e)
	}
	if g.env.Watch != nil {
		g.env.Watch(e)
	}
	if p.explain != nil {
		*p.explain = *e
		p.explain = nil
	}
	return peer, why
}

// view is one pick being looked at.
type view struct {
	e     *Explanation
	pass  *Pass
	round *Round
	now   moment
	main  []*Peer // nil when the pass has left the main part before
}

func (v *view) before(backup []*Peer) {
	v.e.Candidates = make([]Candidate, len(v.main)+len(backup))
	marks := &v.pass.marks
	if v.pass.inBackup {
		marks.show(backup)
		defer marks.hide(backup)
	} else {
		marks.show(v.main)
		defer marks.hide(v.main)
	}
	for i, p := range v.main {
		v.look(&v.e.Candidates[i], p)
	}
	for i, p := range backup {
		v.look(&v.e.Candidates[len(v.main)+i], p)
	}
}

func (v *view) look(c *Candidate, p *Peer) {
	*c = Candidate{ID: p.key.ID, Addr: p.addr, Backup: p.key.Backup, Reason: p.why(v.now.second), Weight: p.weight,
		CurrentBefore: p.current, EffectiveBefore: min(p.effective, p.cap(v.now.milli)),
		Conns: int(p.conns), MaxConns: int(p.maxConns), Fails: int(p.fails)}
	if p.flags&isTried != 0 {
		c.Reason = Tried
	}
	if c.Reason == Failed {
		c.FailedUntil = p.checked + p.window
	}
}

func (v *view) after(peer *Peer, why Reason) {
	e, g := v.e, v.pass.group
	e.Part, e.Reason, e.Code = "main", why, v.round.how
	parts := [...][]*Peer{v.main, g.backup.peers}
	if v.pass.inBackup {
		e.Part = "backup"
	} else {
		parts[1] = nil
		e.Candidates = e.Candidates[:len(v.main)]
	}
	at := 0
	for _, peers := range parts {
		for _, p := range peers {
			c := &e.Candidates[at]
			at++
			c.CurrentAfter, c.EffectiveAfter = p.current, min(p.effective, p.cap(v.now.milli))
			c.Debt, c.Won = p.full-c.EffectiveAfter, p == peer
		}
	}
	v.keys()
	if peer == nil {
		e.Code, e.Why = Nobody, "nobody can be given: "+why.String()
		return
	}
	e.Winner, e.Addr = peer.ID(), peer.addr
	v.judge()
}

// keys takes over what the method noted.
func (v *view) keys() {
	for i := range v.round.notes {
		n := &v.round.notes[i]
		at := int(n.index)
		if n.backup {
			at += len(v.main)
		}
		if at < len(v.e.Candidates) {
			key := n.key
			v.e.Candidates[at].Key = &key
		}
	}
}

// judge says of each candidate of the winner's part why it was not taken, and in words why the winner was.
func (v *view) judge() {
	e := v.e
	part := e.Candidates
	if v.pass.inBackup {
		part = part[len(v.main):]
	}
	liked := map[int32]bool{}
	if e.Code == ByTie {
		for _, i := range v.round.kept {
			liked[i] = true
		}
	}
	var won, next *Candidate // next: the best of the others that were compared with it
	for i := range part {
		if part[i].Won {
			won = &part[i]
		}
	}
	for i := range part {
		c := &part[i]
		if c.Won || c.Reason != Eligible {
			continue
		}
		c.Passed = e.passed(c, won, liked[int32(i)])
		if c.Passed == PassedByWeight || c.Passed == PassedByOrder {
			if next == nil || c.bid() > next.bid() {
				next = c
			}
		}
	}
	e.Why = e.words(won, next)
}

func (e *Explanation) passed(c, won *Candidate, liked bool) Passed {
	switch {
	case e.Code == BySession:
		return PassedForSession
	case e.Code == ByMethod, e.Code == ByTie && !liked:
		return PassedByMethod
	case c.bid() == won.bid():
		return PassedByOrder
	}
	return PassedByWeight
}

// words say why won won; next is the best of those that it had to beat by weight, nil when there was none.
func (e *Explanation) words(won, next *Candidate) string {
	among := "all that could be given"
	switch e.Code {
	case BySingle:
		return "the only peer of the upstream is always given"
	case BySession:
		if won.CurrentAfter < won.CurrentBefore {
			return "the session is bound to it; it pays for the turn"
		}
		return "the session is bound to it"
	case ByMethod:
		if won.Key != nil {
			return fmt.Sprintf("%s likes it best: %.6g%s", e.Method, *won.Key, e.second())
		}
		return e.Method + " leads to it"
	case ByTie:
		among = "those that " + e.Method + " likes best"
	}
	if next == nil {
		return "nobody else among " + among
	}
	bids := e.inUnits(won.CurrentBefore) + " + " + e.inUnits(won.EffectiveBefore) + " = " + e.inUnits(won.bid())
	if next.bid() == won.bid() {
		return bids + " is the greatest current weight among " + among + ", as is that of " + next.ID + ", which stands after it"
	}
	return bids + " is the greatest current weight among " + among + "; next is " + next.ID + " with " + e.inUnits(next.bid())
}

// second is the best key of those that lost to the method.
func (e *Explanation) second() string {
	least := math.Inf(1)
	for i := range e.Candidates {
		if c := &e.Candidates[i]; c.Key != nil && c.Passed == PassedByMethod {
			least = min(least, *c.Key)
		}
	}
	if math.IsInf(least, 1) {
		return ""
	}
	return fmt.Sprintf(", the next best is %.6g", least)
}

func (e *Explanation) inUnits(n int) string {
	if e.Unit <= 1 {
		return strconv.Itoa(n)
	}
	return strconv.FormatFloat(float64(n)/float64(e.Unit), 'f', -1, 64)
}
