package registry

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// releaseServices removes the services that have had no instance since before, with what they own.
func (s *Store) releaseServices(ctx context.Context, before int64) (int, error) {
	var names []string
	err := s.db.SelectContext(ctx, &names, `SELECT name FROM service WHERE emptied_at > 0 AND emptied_at < ? ORDER BY name`, before)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, service := range names {
		gone := false
		err := s.write(ctx, func(tx *sqlx.Tx) (err error) {
			gone, err = s.releaseService(ctx, tx, service, before)
			return err
		})
		if err != nil {
			return total, fmt.Errorf("release %s: %w", service, err)
		}
		if gone {
			total++
		}
	}
	return total, nil
}

func (s *Store) releaseService(ctx context.Context, tx *sqlx.Tx, service string, before int64) (bool, error) {
	ids, err := s.instancesOf(ctx, tx, service)
	if err != nil {
		return false, err
	}
	book, err := s.lockLedger(ctx, tx)
	if err != nil {
		return false, err
	}
	known, err := servicesWhere(ctx, tx, `name = ? AND emptied_at > 0 AND emptied_at < ?`, service, before)
	if err != nil || len(known) == 0 {
		return false, err
	}
	if full, err := hasRoutable(ctx, tx, service); err != nil || full {
		return false, err
	}
	// One that is superseded and still beats keeps the service, for what forget says.
	var last int64
	err = tx.GetContext(ctx, &last, `SELECT COALESCE(MAX(h.received_at), 0) FROM instance i JOIN hot h ON h.id = i.id
		WHERE i.service = ?`, service)
	if err != nil || last >= before {
		return false, err
	}
	w := newWorld(-1, "housekeeping", s.now())
	w.book = book
	var newest int64
	if err := tx.GetContext(ctx, &newest, `SELECT COALESCE(MAX(revision), 0) FROM instance WHERE service = ?`, service); err != nil {
		return false, err
	}
	book.forgotten = max(book.forgotten, newest)
	if err := deleteInstances(ctx, tx, ids); err != nil {
		return false, err
	}
	if err := s.releaseClaims(ctx, tx, w, service); err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM service WHERE name = ?`, service); err != nil {
		return false, err
	}
	if err := s.remove(ctx, tx, w, removedService, service); err != nil {
		return false, err
	}
	w.events = append(w.events, Event{At: w.now, Kind: EventServiceGone, Service: service, Actor: w.actor,
		Cause: "no instance since " + time.UnixMicro(known[0].EmptiedAt).UTC().Format(time.RFC3339)})
	return true, s.flush(ctx, tx, w)
}

// instancesOf locks the hot rows of a service's instances, in the lock order.
func (s *Store) instancesOf(ctx context.Context, tx *sqlx.Tx, service string) ([]int64, error) {
	var ids []int64
	if err := tx.SelectContext(ctx, &ids, `SELECT id FROM instance WHERE service = ? ORDER BY id`, service); err != nil {
		return nil, err
	}
	l := loader{store: s, tx: tx}
	return ids, l.lockHot(ctx, ids)
}

// releaseClaims takes a service's routes from it. Each goes to the service that has waited for it longest, if any.
func (s *Store) releaseClaims(ctx context.Context, tx *sqlx.Tx, w *world, service string) error {
	claims, err := claimsWhere(ctx, tx, `service = ?`, service)
	if err != nil {
		return err
	}
	for _, c := range claims {
		if _, err := tx.ExecContext(ctx, `DELETE FROM route_claim WHERE path = ?`, c.Path); err != nil {
			return err
		}
		w.events = append(w.events, Event{At: w.now, Kind: EventRouteReleased, Service: service, Actor: w.actor,
			Cause: fmt.Sprintf("route %s released", c.Path)})
		heir, err := firstAt(ctx, tx, c.Path)
		if err != nil {
			return err
		}
		if heir == nil {
			if err := s.remove(ctx, tx, w, removedClaim, c.Path); err != nil {
				return err
			}
			continue
		}
		if _, counted := w.routes[heir.Service]; !counted {
			if err := countRoutes(ctx, tx, w, []string{heir.Service}); err != nil {
				return err
			}
		}
		w.route(heir)
		if w.claims[c.Path] == nil { // the heir came to its limit by what it got here
			if err := s.remove(ctx, tx, w, removedClaim, c.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstAt is the oldest routable instance that serves a path and whose service may have one more, nil when there is none.
func firstAt(ctx context.Context, tx *sqlx.Tx, path string) (*row, error) {
	var first *row
	err := queryRows(ctx, tx, selectRow+` WHERE i.url IN (?, ?) AND i.liveness IN ('live', 'unproven')
		AND NOT (i.service >= ? AND i.service < ?) AND (SELECT COUNT(*) FROM route_claim c WHERE c.service = i.service) < ?
		ORDER BY i.id LIMIT 1`, []any{path, path + "/", AgentPrefix, agentEnd, MaxRoutes},
		func(r *row) { first = r })
	return first, err
}

func (s *Store) remove(ctx context.Context, tx *sqlx.Tx, w *world, kind, name string) error {
	q := s.dialect.upsert("removal", "kind, name", []string{"kind", "name", "revision"}, 1)
	if _, err := tx.ExecContext(ctx, q, kind, name, w.book.next()); err != nil {
		return fmt.Errorf("note the removal of %s %s: %w", kind, name, err)
	}
	return nil
}
