package balance

import (
	"context"
	"time"
)

// QueueSpec lets requests wait for whom no peer has room. The zero value lets none.
type QueueSpec struct {
	Most    int           // that wait at once
	Timeout time.Duration // for each of them
}

// waiting is the requests that wait for a peer of one upstream, in order.
type waiting struct {
	first, last *waiter
	n           int
}

// waiter is one of them. Its pass is a copy that belongs to whoever holds the upstream's mutex until done is closed.
type waiter struct {
	pass         Pass
	peer         *Peer
	why          Reason
	done         chan struct{}
	next, before *waiter
}

// Queues tells whether a pass for which Pick found nobody but full peers may Wait.
func (g *Group) Queues() bool { return g.spec.Queue.Most > 0 }

// QueueTimeout is how long a request may Wait.
func (g *Group) QueueTimeout() time.Duration { return g.spec.Queue.Timeout }

// Waiting is how many requests wait for one of the upstream's peers.
func (g *Group) Waiting() int {
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock()
	return g.shared.waiting.n
}

// lookEvery is how often the one who waits longest looks by itself: what a peer's failures forbade is allowed by time alone.
const lookEvery = time.Second

// Wait is a pick that waits in the upstream's queue until a peer has room, in the order in which it is called; those that
// come later, and have not been sent anywhere yet, get nothing before. It gives nobody when the queue is full, when its
// time is over, when ctx ends, or when there is nobody left to wait for.
func (p *Pass) Wait(ctx context.Context) (*Peer, Reason) {
	g, s := p.group, p.group.shared
	now := g.env.Clock.moment()
	s.mu.Lock()
	if s.waiting.n >= g.spec.Queue.Most {
		s.mu.Unlock()
		return nil, Full
	}
	w := &waiter{pass: *p, why: Full, done: make(chan struct{})}
	s.waiting.push(w)
	s.serve(now)
	s.mu.Unlock()
	w.await(ctx, g)
	*p = w.pass
	return w.peer, w.why
}

// await returns when the waiter is in no queue any more.
func (w *waiter) await(ctx context.Context, g *Group) {
	s, clock := g.shared, g.env.Clock
	gone := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { close(gone) })
	defer stop()
	over := time.NewTimer(g.spec.Queue.Timeout)
	defer over.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-look.C:
			now := clock.moment()
			s.mu.Lock()
			if s.waiting.first == w { // one look is for all
				s.serve(now)
			}
			s.mu.Unlock()
			continue
		case <-over.C:
		case <-gone:
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		select {
		case <-w.done: // in the meantime
		default:
			s.waiting.remove(w)
		}
		return
	}
}

// serve gives those who wait what there is, in order. One who may not have what is there, since it was tried before, holds
// nobody up. The mutex is held.
func (s *shared) serve(now moment) {
	var empty *Group // it has nobody for those who have tried nothing yet
	for w := s.waiting.first; w != nil; {
		at := w
		w = w.next
		p := &at.pass
		if p.given == 0 && p.group == empty {
			continue
		}
		peer, why := p.retried(now)
		if peer == nil && p.mayGet(now) {
			if p.given == 0 {
				empty = p.group
			}
			continue
		}
		s.waiting.remove(at)
		at.peer, at.why = peer, why
		close(at.done)
	}
}

// retried is a pick after which another one may look at the same peers.
func (p *Pass) retried(now moment) (*Peer, Reason) {
	inBackup, marks := p.inBackup, p.marks
	peer, why := p.picked(now)
	if peer == nil {
		p.inBackup, p.marks = inBackup, marks
	}
	return peer, why
}

// mayGet tells whether there is a peer that has no room now and may be given when it has.
func (p *Pass) mayGet(now moment) bool {
	g := p.group
	switch {
	case g.single:
		return (g.main.peers[0].flags&^isFailing).why(g.main.peers[0], now.second) == Full
	case p.inBackup:
		return anyFull(g.backup.peers, &p.marks, now)
	}
	return anyFull(g.main.peers, &p.marks, now) || anyFull(g.backup.peers, &marks{}, now)
}

func anyFull(peers []*Peer, tried *marks, now moment) bool {
	tried.show(peers)
	defer tried.hide(peers)
	for _, peer := range peers {
		if peer.why(now.second) == Full && peer.flags&isTried == 0 {
			return true
		}
	}
	return false
}

// moveTo lets those who have tried nothing yet have the peers of a newer group.
func (q *waiting) moveTo(g *Group) {
	if len(g.peers) == 0 {
		return
	}
	for w := q.first; w != nil; w = w.next {
		if w.pass.given == 0 {
			w.pass.group = g
		}
	}
}

func (q *waiting) push(w *waiter) {
	w.before = q.last
	if q.last != nil {
		q.last.next = w
	} else {
		q.first = w
	}
	q.last = w
	q.n++
}

func (q *waiting) remove(w *waiter) {
	if w.before != nil {
		w.before.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.before = w.before
	} else {
		q.last = w.before
	}
	w.next, w.before = nil, nil
	q.n--
}
