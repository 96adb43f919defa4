package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"
)

// maxSuspects bounds how many newly silent instances one batch judges, and how many verdicts it carries out, so that the
// revision lock is not held for long; the next batch goes on.
const maxSuspects = 1000

// court is the judgement of one batch: who is suspected, and what the guard decided. What it does is settled under the
// revision lock, where each of them is looked at again.
type court struct {
	list     []suspect
	verdicts []verdict
	held     map[string]hold
	guard    guard
}

// acts reports whether a verdict changes anyone.
func (c *court) acts() bool {
	return c != nil && slices.ContainsFunc(c.verdicts, func(v verdict) bool { return v != keep })
}

// ids are those whom a verdict changes.
func (c *court) ids() []int64 {
	if c == nil {
		return nil
	}
	var ids []int64
	for i, v := range c.verdicts {
		if v != keep {
			ids = append(ids, c.list[i].id)
		}
	}
	return ids
}

// suspects finds who is silent for too long and lets the guard decide. Nobody is judged before the log is read to its end.
func (st *Stream) suspects(ctx context.Context, tx *sqlx.Tx, b *Batch, out *outcome) (*court, error) {
	clock := out.to.clock.micros
	if !b.CaughtUp {
		return nil, nil
	}
	var silent []*row
	if clock > st.index.earliest {
		silent, out.earliest = st.index.overdue(clock, maxSuspects, st.plan.seenAt)
		out.scanned = true
	}
	c := &court{guard: guard{limit: st.store.opt.UnprovenLimit, share: st.store.opt.ReleaseShare}}
	for _, r := range silent {
		if r.mark == st.plan.mark && r.slow {
			out.earliest = min(out.earliest, clock-1) // it has news in this batch: look again with the next one
			continue
		}
		c.list = append(c.list, suspect{id: r.DenseID, service: r.Service, limit: r.StaleAfter.Microseconds()})
	}
	if len(c.list) == 0 && !st.reviewDue(clock) {
		return nil, nil
	}
	for _, r := range sortedRows(st.index.unproven) {
		if r.mark == st.plan.mark && r.slow {
			continue
		}
		c.list = append(c.list, suspect{id: r.DenseID, service: r.Service, limit: r.StaleAfter.Microseconds(),
			unproven: true, since: r.unprovenClock})
	}
	if len(c.list) == 0 {
		return nil, nil
	}
	all, err := st.store.tallies(ctx, tx)
	if err != nil {
		return nil, err
	}
	c.held = heldServices(all)
	c.verdicts, out.memory = c.guard.judge(c.list, all, c.held, st.memory, clock)
	c.limit(maxSuspects)
	return c, nil
}

// limit leaves all but the first n of those who would change as they are. The newly silent come first, so only unproven
// ones are left for later.
func (c *court) limit(n int) {
	for i, v := range c.verdicts {
		if v == keep {
			continue
		}
		if n--; n < 0 {
			c.verdicts[i] = keep
		}
	}
}

// reviewDue reports whether the unproven ones are to be looked at again: ten times within the shortest of their limits,
// since counting costs a pass over the registry.
func (st *Stream) reviewDue(clock int64) bool {
	if len(st.index.unproven) == 0 {
		return false
	}
	shortest := int64(0)
	for _, r := range st.index.unproven {
		if l := r.StaleAfter.Microseconds(); shortest == 0 || l < shortest {
			shortest = l
		}
	}
	return clock-st.judged >= shortest/10
}

// execute carries out the verdicts on those of whom everything still holds that they were judged by: they beat through
// this partition, and have been silent since.
func (c *court) execute(w *world, clock int64) {
	if c == nil {
		return
	}
	for i, v := range c.verdicts {
		s := c.list[i]
		r := w.byID[s.id]
		if v == keep || r == nil || r.part != w.part || clock-r.clock <= r.StaleAfter.Microseconds() {
			continue
		}
		if s.unproven && r.Liveness == Unproven || !s.unproven && r.Liveness == Live {
			w.condemned(r, v, c.held[s.service], clock, c.guard.limit)
		}
	}
}

// tallies counts every service over all partitions. It is read outside the revision lock: a count that is a moment old
// decides as well.
func (s *Store) tallies(ctx context.Context, tx *sqlx.Tx) (map[string]tally, error) {
	const q = `SELECT i.service, COUNT(*),
			SUM(CASE WHEN i.liveness <> 'live' OR (s.clock - h.clock) * 2 > i.beat_interval * 3
				OR s.clock - h.clock > i.stale_after THEN 1 ELSE 0 END),
			SUM(CASE WHEN i.liveness = 'unproven' THEN 1 ELSE 0 END)
		FROM instance i JOIN hot h ON h.id = i.id JOIN stream s ON s.part = h.part
		WHERE i.liveness IN ('live', 'unproven') OR i.liveness = 'stale' AND s.clock - i.stale_clock <= i.stale_after
		GROUP BY i.service`
	rows, err := tx.QueryContext(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("count the silent: %w", err)
	}
	defer func() { _ = rows.Close() }()
	all := map[string]tally{}
	for rows.Next() {
		var service string
		var t tally
		if err := rows.Scan(&service, &t.members, &t.overdue, &t.unproven); err != nil {
			return nil, fmt.Errorf("count the silent: %w", err)
		}
		all[service] = t
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("count the silent: %w", err)
	}
	maps.DeleteFunc(all, func(service string, _ tally) bool { return IsAgent(service) })
	return all, nil
}
