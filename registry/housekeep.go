package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Policy is for how long what is over is kept. The zero value means the defaults.
type Policy struct {
	ReleaseAfter time.Duration // a service without instances keeps its routes for this long; default 7 days
	ForgetAfter  time.Duration // rows of dead instances; default 24 h
	EventsFor    time.Duration // default 30 days
	RejectedFor  time.Duration // unusable records; default 7 days
	Step         int           // rows per transaction; default 500
}

func (p Policy) fill() Policy {
	or := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	or(&p.ReleaseAfter, 7*24*time.Hour)
	or(&p.ForgetAfter, 24*time.Hour)
	or(&p.EventsFor, 30*24*time.Hour)
	or(&p.RejectedFor, 7*24*time.Hour)
	if p.Step == 0 {
		p.Step = inChunk
	}
	return p
}

// Housekept is what a Housekeep did.
type Housekept struct {
	Services  int // services that are gone, with their routes
	Forgotten int // rows of dead instances
	Events    int
	Rejected  int
}

// keepRemovals is how many removals are remembered for readers of Changes that were away.
const keepRemovals = 10_000

// Housekeep deletes what is older than the policy keeps it, in limited steps. What changes routing (a released route)
// raises the revision and is an event. It may be called by several at once and at any time; confgen's leader does.
func (s *Store) Housekeep(ctx context.Context, now time.Time, p Policy) (Housekept, error) {
	p = p.fill()
	var done Housekept
	before := func(d time.Duration) int64 { return now.Add(-d).UnixMicro() }
	var errs []error
	note := func(what string, n *int, got int, err error) {
		*n += got
		if err != nil {
			errs = append(errs, fmt.Errorf("registry: housekeep %s: %w", what, err))
		}
	}
	n, err := s.forget(ctx, before(p.ForgetAfter), p.Step)
	note("dead instances", &done.Forgotten, n, err)
	n, err = s.releaseServices(ctx, before(p.ReleaseAfter))
	note("services", &done.Services, n, err)
	n, err = s.deleteInSteps(ctx, `SELECT seq FROM event WHERE happened_at < ? ORDER BY happened_at LIMIT ?`,
		[]any{before(p.EventsFor), p.Step}, `DELETE FROM event WHERE seq IN `)
	note("events", &done.Events, n, err)
	n, err = s.trimOldRejected(ctx, before(p.RejectedFor))
	note("unusable records", &done.Rejected, n, err)
	n = 0
	note("removals", &n, 0, s.trimRemovals(ctx))
	return done, errors.Join(errs...)
}

// forget deletes rows of instances that are dead for long. One that is superseded and still beats stays: as a new one its
// next beat would claim the address that is another's.
func (s *Store) forget(ctx context.Context, before int64, step int) (int, error) {
	total := 0
	for {
		var ids []int64
		err := s.db.SelectContext(ctx, &ids, `SELECT i.id FROM instance i JOIN hot h ON h.id = i.id
			WHERE i.liveness IN ('stale', 'left', 'superseded') AND i.changed_at < ? AND h.received_at < ? LIMIT ?`, before, before, step)
		if err != nil || len(ids) == 0 {
			return total, err
		}
		n := 0
		err = s.write(ctx, func(tx *sqlx.Tx) error {
			n, err = s.forgetRows(ctx, tx, ids, before)
			return err
		})
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}

// forgetRows deletes those of ids that are still dead and have not beaten meanwhile.
func (s *Store) forgetRows(ctx context.Context, tx *sqlx.Tx, ids []int64, before int64) (int, error) {
	l := loader{store: s, tx: tx, w: newWorld(-1, "housekeeping", s.now())}
	if err := l.lockHot(ctx, ids); err != nil {
		return 0, err
	}
	book, err := s.lockLedger(ctx, tx)
	if err != nil {
		return 0, err
	}
	if ids, err = silentOf(ctx, tx, ids, before); err != nil {
		return 0, err
	}
	var dead []int64
	var events []Event
	err = rowsByID(ctx, tx, ids, func(r *row) {
		if r.Liveness.Routable() || r.ChangedAt >= before {
			return
		}
		dead = append(dead, r.DenseID)
		book.forgotten = max(book.forgotten, r.Revision)
		events = append(events, Event{At: l.w.now, Kind: EventForgotten, Service: r.Service, ID: r.ID, Actor: l.w.actor,
			Cause: fmt.Sprintf("%s since %s", r.Liveness, time.UnixMicro(r.ChangedAt).UTC().Format(time.RFC3339)), Revision: book.n})
	})
	if err != nil {
		return 0, err
	}
	if err := deleteInstances(ctx, tx, dead); err != nil {
		return 0, err
	}
	if err := book.save(ctx, tx); err != nil {
		return 0, err
	}
	return len(dead), insertEvents(ctx, tx, events)
}

// silentOf are those of ids whose last beat came before.
func silentOf(ctx context.Context, tx *sqlx.Tx, ids []int64, before int64) ([]int64, error) {
	var silent []int64
	err := chunks(ids, inChunk, func(part []int64) error {
		var some []int64
		err := tx.SelectContext(ctx, &some, `SELECT id FROM hot WHERE received_at < ? AND id IN (`+marks(len(part))+`) ORDER BY id`,
			append([]any{before}, anys(part)...)...)
		silent = append(silent, some...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for beats: %w", err)
	}
	return silent, nil
}

func deleteInstances(ctx context.Context, tx *sqlx.Tx, ids []int64) error {
	return chunks(ids, inChunk, func(part []int64) error {
		for _, from := range []string{"hot WHERE id", "address WHERE instance", "instance WHERE id", "agent_report WHERE id"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+from+` IN (`+marks(len(part))+`)`, anys(part)...); err != nil {
				return fmt.Errorf("delete %d instances: %w", len(part), err)
			}
		}
		return nil
	})
}

func (s *Store) trimOldRejected(ctx context.Context, before int64) (int, error) {
	var parts []int32
	if err := s.db.SelectContext(ctx, &parts, `SELECT DISTINCT part FROM rejected ORDER BY part`); err != nil {
		return 0, err
	}
	total := 0
	for _, part := range parts {
		n, err := s.deleteInSteps(ctx, `SELECT log_offset FROM rejected WHERE part = ? AND received_at < ? LIMIT 500`,
			[]any{part, before}, fmt.Sprintf(`DELETE FROM rejected WHERE part = %d AND log_offset IN `, part))
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (s *Store) trimRemovals(ctx context.Context) error {
	var edge []int64
	err := s.db.SelectContext(ctx, &edge, `SELECT revision FROM removal ORDER BY revision DESC LIMIT 1 OFFSET ?`, keepRemovals)
	if err != nil || len(edge) == 0 {
		return err
	}
	return s.write(ctx, func(tx *sqlx.Tx) error {
		book, err := s.lockLedger(ctx, tx)
		if err != nil {
			return err
		}
		book.forgotten = max(book.forgotten, edge[0])
		if _, err := tx.ExecContext(ctx, `DELETE FROM removal WHERE revision <= ?`, edge[0]); err != nil {
			return err
		}
		return book.save(ctx, tx)
	})
}
