package registry

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// tally counts one service over all partitions, each instance against its own partition's clock. Leavers and superseded
// ones are not in it, nor those that have been stale for longer than their limit.
type tally struct {
	members  int // routable, or went stale within the last limit
	overdue  int // of them: missed 1.5 of their beats, or went stale
	unproven int // of them: held by the guard now
}

// guardMin is the number of overdue instances below which silence is believed: one or two do die together.
const guardMin = 3

// heldServices decides whose silence is not believed, because too many are silent at once for all of them to be dead.
// First, a service is held by itself: at least half of it is overdue, or its overdue ones alone are a third of the
// whole registry. Then the rest is looked at together: when a third of all instances of the services that are not
// held by themselves is overdue, all of these are held. So small services that are cut off together are kept, and the
// dead of other services still go while one big service is held. Each form takes at least three overdue instances.
func heldServices(all map[string]tally) map[string]hold {
	held := map[string]hold{}
	var whole int
	for _, t := range all {
		whole += t.members
	}
	rest := hold{of: "the other services"}
	for service, t := range all {
		switch {
		case t.overdue >= guardMin && 2*t.overdue >= t.members:
			held[service] = hold{t.overdue, t.members, "its service"}
		case t.overdue >= guardMin && 3*t.overdue >= whole:
			held[service] = hold{t.overdue, whole, "the registry"}
		default:
			rest.overdue += t.overdue
			rest.members += t.members
		}
	}
	if len(held) == 0 {
		rest.of = "the registry"
	}
	if rest.overdue >= guardMin && 3*rest.overdue >= rest.members {
		for service, t := range all {
			if _, ok := held[service]; !ok && t.overdue > 0 {
				held[service] = rest
			}
		}
	}
	return held
}

// hold is why a service is held: so many are overdue of so many of what.
type hold struct {
	overdue, members int
	of               string
}

// suspect is an instance of the partition that is silent for longer than its limit.
type suspect struct {
	id       int64
	service  string
	limit    int64 // its stale limit, µs
	unproven bool  // held already
	since    int64 // clock at which it became unproven
}

// verdict is what becomes of a suspect.
type verdict int

const (
	keep     verdict = iota // as it is
	doubt                   // live → unproven
	condemn                 // → stale, by the usual rule
	released                // unproven → stale, its time is up
)

// guardState is what a partition's judge remembers of the services that are held. It starts empty with a new owner, who
// then only waits longer. Values are replaced, never changed, so a transaction that is not committed leaves none.
type guardState map[string]guardMemory

type guardMemory struct {
	relieved   int64   // clock at which the guard's condition was first found to hold no more; 0: it holds
	credit     float64 // instances that may be released
	creditedAt int64   // clock up to which credit was given
}

// guard is the settings of the decision.
type guard struct {
	limit time.Duration // how long instances are held unproven
	share float64       // of a service's unproven ones, released per second after that
}

// judge decides on the suspects of one partition, pure: the verdicts in the order of the suspects, and what to remember.
// all counts the services over all partitions, held are those of them whose silence is not believed.
//
// Unproven ones stay while the guard's condition holds. When it holds no longer, the others being back, what is still
// silent has one more of its stale limits to beat, then it goes stale by the usual rule. After the guard's limit, whether
// the condition holds or not, they are released in small steps, the longest held first.
func (g guard) judge(suspects []suspect, all map[string]tally, held map[string]hold, memory guardState, clock int64) ([]verdict, guardState) {
	mine, next := unprovenOf(suspects), guardState{}
	verdicts := make([]verdict, len(suspects))
	for _, i := range longestHeldFirst(suspects) {
		s := suspects[i]
		if !s.unproven {
			verdicts[i] = condemn
			if _, ok := held[s.service]; ok {
				verdicts[i] = doubt
			}
			continue
		}
		m, ok := next[s.service]
		if !ok {
			_, holds := held[s.service]
			m = memory[s.service].update(holds, clock)
		}
		if clock-s.since >= g.limit.Microseconds() {
			m = m.earn(all[s.service].unproven, mine[s.service], clock, g.share)
			if m.credit >= 1 {
				m.credit--
				verdicts[i] = released
			}
		}
		if verdicts[i] == keep && m.relieved != 0 && clock-m.relieved > s.limit {
			verdicts[i] = condemn
		}
		next[s.service] = m
	}
	return verdicts, next
}

// unprovenOf counts this partition's unproven ones of each service.
func unprovenOf(suspects []suspect) map[string]int {
	n := map[string]int{}
	for _, s := range suspects {
		if s.unproven {
			n[s.service]++
		}
	}
	return n
}

// update notes whether the condition holds at clock.
func (m guardMemory) update(held bool, clock int64) guardMemory {
	switch {
	case held:
		m.relieved = 0
	case m.relieved == 0:
		m.relieved = max(clock, 1)
	}
	return m
}

// earn adds the credit of the time since it was last given: share of all the service's unproven instances per second, at
// least one, of which this partition gets its part. It is not saved up for more than two seconds.
func (m guardMemory) earn(unproven, mine int, clock int64, share float64) guardMemory {
	if m.creditedAt == 0 {
		m.creditedAt = clock
		return m
	}
	rate := max(1, share*float64(unproven)) * float64(mine) / float64(max(unproven, mine, 1))
	m.credit += rate * micros(clock-m.creditedAt).Seconds()
	m.credit = min(m.credit, max(1, 2*rate))
	m.creditedAt = clock
	return m
}

// longestHeldFirst are the indexes of the suspects by when they became unproven, then by key.
func longestHeldFirst(suspects []suspect) []int {
	order := make([]int, len(suspects))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := suspects[a], suspects[b]
		return cmp.Or(cmp.Compare(x.since, y.since), cmp.Compare(x.id, y.id))
	})
	return order
}

// condemned applies a verdict to an instance that was found to deserve it.
func (w *world) condemned(r *row, v verdict, h hold, clock int64, limit time.Duration) {
	silent := micros(clock - r.clock)
	switch v {
	case doubt:
		w.become(r, Unproven, EventUnproven, fmt.Sprintf("no beat for %s of stream time, with %d of %d of %s silent",
			seconds(silent), h.overdue, h.members, h.of))
		r.unprovenClock = clock
	case condemn:
		w.become(r, Stale, EventStale, fmt.Sprintf("no beat for %s of stream time (limit %s)", seconds(silent), plain(r.StaleAfter)))
		r.staleClock = clock
		w.tally.stale++
	case released:
		w.become(r, Stale, EventStale, fmt.Sprintf("no beat for %s of stream time, unproven for longer than %s",
			seconds(silent), plain(limit)))
		r.staleClock = clock
		w.tally.stale++
	}
}
