package upstrand

import (
	"slices"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// Walk is one request's way through an upstrand. The zero value is none. It belongs to one goroutine.
//
// From Begin on there is a stop at hand, which Enter begins; After says what its result means, and when another stop
// follows, that one is at hand. A walk goes around each list at most once.
type Walk struct {
	state  *State
	plan   *plan
	method []byte
	tell   func(Step)

	list   int    // of the stop at hand
	start  [2]int // in each list
	passed [2]int // places from there on that were visited or passed over
	at     *stop  // at hand; nil: the upstrand has no members
	gone   []key  // the stops before; kept when another one follows
	most   int    // stops that there may be
	stops  int    // entered

	began int64 // when the first stop was entered
	cause Cause // of the jump to the stop at hand
	last  bool  // everything was blacklisted: no other stop follows, and this one stamps nothing
	over  bool  // the last result was final
}

// Ask is what a walk depends on.
type Ask struct {
	Method []byte
	Tell   func(Step) // is told each step, for explanations; nil: nobody is
}

// Begin begins a walk and finds its first stop. It moves the cursor also when the stop is never entered.
func (s *State) Begin(ask Ask, now int64) Walk {
	w := Walk{state: s, method: ask.Method, tell: s.telling(ask, now)}
	s.mu.Lock()
	w.plan = s.plan.Load()
	w.start = s.starts(w.plan)
	w.most = w.plan.size()
	cleared := false
	if w.most > 0 {
		w.at, cleared = w.next(now)
	}
	s.mu.Unlock()
	w.cleared(cleared)
	w.tellStart()
	return w
}

// Begun tells whether there is a walk.
func (w *Walk) Begun() bool { return w.state != nil }

// State is the upstrand's.
func (w *Walk) State() *State { return w.state }

// At is the stop at hand, or the last one when the walk is over; nil: the upstrand has no members.
func (w *Walk) At() *Member {
	if w.at == nil {
		return nil
	}
	return &w.at.Member
}

// Stops is the number of stops entered.
func (w *Walk) Stops() int { return w.stops }

// More tells whether another stop may follow the one at hand, as far as that is known before its result.
func (w *Walk) More() bool {
	if w.last || w.over || w.plan.spec.Next == (Statuses{}) {
		return false
	}
	for i := w.list; i < len(w.plan.lists); i++ {
		if w.passed[i] < len(w.plan.lists[i]) {
			return true
		}
	}
	return false
}

// Enter begins the stop at hand and gives its upstream; nil: it has nobody to give.
func (w *Walk) Enter(now int64) *balance.Group {
	if w.stops++; w.stops == 1 {
		w.began = now
	}
	w.state.entered(w)
	if w.at == nil {
		return nil
	}
	return w.at.Group
}

// Result is what a stop came to.
type Result struct {
	Status int
	Own    bool // no backend answered with it: 502 or 504 made here
	Sent   bool // something of the request had left us in the last attempt
	Held   bool // the request can be sent again: it has no body, or all of it that was read is held
}

// After says whether another stop follows the one at hand, given its result. Then that other one is at hand.
func (w *Walk) After(r Result, now int64) bool {
	s := w.state
	cleared := false
	s.mu.Lock()
	listed := w.plan.spec.Next.Has(r.Status, r.Own)
	if listed && w.at != nil && w.at.interval > 0 && !w.last {
		w.at.kept.stamped, w.at.kept.stamp = true, second(now)
		w.at.kept.counts.Blacklisted++
	}
	final := w.final(r, listed, now)
	if final == Going {
		var next *stop
		if next, cleared = w.follow(now); next == nil {
			final = LastStop
		}
	}
	if final != Going {
		w.finish(final, now)
	}
	s.mu.Unlock()
	w.cleared(cleared)
	w.explain(r, final)
	if final != Going {
		return false
	}
	w.cause = causeOf(r)
	return true
}

// final says why the result at hand is the answer; Going: nothing does.
func (w *Walk) final(r Result, listed bool, now int64) Final {
	spec := &w.plan.spec
	switch {
	case !listed:
		return Unlisted
	case w.last:
		return AllBlacklisted
	case nonIdempotent(w.method) && !spec.NonIdempotent && (!r.Own || spec.SentIsFinal && r.Sent):
		return NotRepeatable
	case spec.Timeout > 0 && now-w.began >= int64(spec.Timeout):
		return TimeUp
	case !r.Held:
		return BodyLost
	}
	return Going
}

// Stay makes the result at hand final after all: something else forbids the stop that After found.
func (w *Walk) Stay(why Final, now int64) {
	w.state.mu.Lock()
	w.at = w.back()
	w.finish(why, now)
	w.state.mu.Unlock()
	w.tellEnd("stay", why)
}

// Leave ends the walk without an answer: the client went away.
func (w *Walk) Leave(now int64) {
	if w.over {
		return
	}
	w.state.mu.Lock()
	w.finish(Left, now)
	w.state.mu.Unlock()
	w.tellEnd("leave", Left)
}

// finish counts the end of the walk. The state's mutex is held.
func (w *Walk) finish(why Final, now int64) {
	w.over = true
	w.state.counts.Finals[why]++
	w.state.counts.took(time.Duration(now - w.began))
}

// follow finds the stop behind the one at hand, by the plan of now. The state's mutex is held.
func (w *Walk) follow(now int64) (*stop, bool) {
	before := w.at
	if before != nil {
		w.gone = append(w.gone, key{before.Name, before.Backup})
	}
	if p := w.state.plan.Load(); p != w.plan {
		w.adopt(p)
	}
	if w.stops >= w.most {
		return nil, false
	}
	next, cleared := w.next(now)
	if next != nil {
		w.at = next
	}
	return next, cleared
}

// back is the stop before the one at hand, when After has just moved on; nil: there was none.
func (w *Walk) back() *stop {
	if len(w.gone) == 0 {
		return nil
	}
	k := w.gone[len(w.gone)-1]
	for _, s := range w.plan.lists[(&Member{Backup: k.backup}).list()] {
		if s.Name == k.name {
			return s
		}
	}
	return nil
}

// adopt goes on by another plan. In each list the walk goes on behind the last of its stops that the new one has too, and
// passes over those that it made.
func (w *Walk) adopt(p *plan) {
	w.plan = p
	w.most = max(w.most, p.size())
	for i, list := range p.lists {
		w.passed[i] = 0
		if len(list) > 0 {
			w.start[i] %= len(list)
		}
		for _, k := range slices.Backward(w.gone) {
			if at := slices.IndexFunc(list, func(s *stop) bool { return k == key{s.Name, s.Backup} }); at >= 0 {
				w.start[i] = at // it is a stop that was made: what is behind it comes next
				break
			}
		}
	}
}

// next is the first upstream from here on that is not blacklisted and was no stop yet. When all upstreams of all lists
// are blacklisted, all are taken off the list, and one that is left is the last stop. The state's mutex is held.
func (w *Walk) next(now int64) (found *stop, cleared bool) {
	sec := second(now)
	var left *stop // first place in the last list that has one: where the walk stands when everything is blocked
	for i := w.list; i < len(w.plan.lists); i++ {
		list, first := w.plan.lists[i], true
		for w.passed[i] < len(list) {
			s := list[(w.start[i]+w.passed[i])%len(list)]
			w.passed[i]++
			if slices.Contains(w.gone, key{s.Name, s.Backup}) {
				continue
			}
			if !s.blocked(sec) {
				w.list = i
				return s, false
			}
			w.skip(s, sec)
			if first {
				left, first = s, false
			}
		}
	}
	if left == nil || !w.plan.allBlocked(sec) {
		return nil, false
	}
	w.plan.clear("")
	w.state.counts.Cleared++
	w.list, w.last = left.list(), true
	return left, true
}

// cleared tells those who want to know that the blacklist was emptied.
func (w *Walk) cleared(yes bool) {
	if !yes {
		return
	}
	if w.tell != nil {
		w.tell(Step{What: "clear", Why: "all_blacklisted"})
	}
	if f := w.state.env.AllBlocked; f != nil {
		f(w.state.name)
	}
}
