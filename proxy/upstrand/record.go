package upstrand

import (
	"sync"
	"time"
)

// Recorded is one walk, as it was explained.
type Recorded struct {
	Time   time.Time // when its first stop was found
	Method string    // of the request
	Steps  []Step    // the last one says how it ended
}

// Record keeps the last n walks that ended, of those that begin from now on; 0 keeps none. Of those kept before, the n
// newest stay.
func (s *State) Record(n int) {
	if n <= 0 {
		s.record.Store(nil)
		return
	}
	next := &recorder{limit: n}
	if old := s.record.Load(); old != nil {
		kept := old.last()
		next.walks = kept[max(len(kept)-n, 0):]
	}
	s.record.Store(next)
}

// Walks gives the walks that Record kept, the one that ended first at first. They must not be changed.
func (s *State) Walks() []*Recorded {
	if r := s.record.Load(); r != nil {
		return r.last()
	}
	return nil
}

// recorder keeps the last walks.
type recorder struct {
	mu    sync.Mutex
	walks []*Recorded
	limit int
	next  int // in walks, once it is full
}

func (r *recorder) add(walk *Recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.walks) < r.limit {
		r.walks = append(r.walks, walk)
		return
	}
	r.walks[r.next] = walk
	r.next = (r.next + 1) % r.limit
}

func (r *recorder) last() []*Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*Recorded, 0, len(r.walks))
	return append(append(out, r.walks[r.next:]...), r.walks[:r.next]...)
}

// telling is who is told the steps of a walk that begins now: whoever asked, and the recorder. It is told while the
// state's mutex is held, too.
func (s *State) telling(ask Ask, now int64) func(Step) {
	r := s.record.Load()
	if r == nil {
		return ask.Tell
	}
	walk := &Recorded{Time: time.Unix(0, now), Method: string(ask.Method)}
	return func(step Step) {
		if ask.Tell != nil {
			ask.Tell(step)
		}
		walk.Steps = append(walk.Steps, step)
		switch step.What {
		case "final", "stay", "leave":
			r.add(walk)
		}
	}
}

// tellStart tells where the walk begins, and why there.
func (w *Walk) tellStart() {
	if w.tell == nil || w.at == nil {
		return
	}
	why := "turn"
	switch spec := &w.plan.spec; {
	case spec.PerRequest && spec.StartRandom:
		why = "chance"
	case spec.PerRequest:
		why = "first"
	}
	w.tell(Step{What: "start", Upstream: w.at.Name, Backup: w.at.Backup, Why: why})
}

// tellEnd tells that the walk ends at the stop at hand for another reason than its result: what is stay or leave.
func (w *Walk) tellEnd(what string, why Final) {
	if w.tell == nil {
		return
	}
	step := Step{What: what, Why: why.String()}
	if w.at != nil {
		step.Upstream, step.Backup = w.at.Name, w.at.Backup
	}
	w.tell(step)
}
