package registry

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
)

// writeChunk is the rows of one wide upsert; SQLite takes at most 32766 arguments.
const writeChunk = 200

// flush writes what a world changed, in the lock order.
func (s *Store) flush(ctx context.Context, tx *sqlx.Tx, w *world) error {
	if err := s.writeSeen(ctx, tx, w); err != nil {
		return err
	}
	if err := s.refusals(ctx, tx, w); err != nil {
		return err
	}
	if err := s.writeInstances(ctx, tx, sortedRows(w.dirty)); err != nil {
		return err
	}
	if err := s.writeAddresses(ctx, tx, w); err != nil {
		return err
	}
	if err := s.writeServices(ctx, tx, w); err != nil {
		return err
	}
	if err := s.writeClaims(ctx, tx, w.newClaims); err != nil {
		return err
	}
	if err := w.book.save(ctx, tx); err != nil {
		return err
	}
	for i := range w.events {
		w.events[i].Revision = w.book.n
	}
	if err := insertEvents(ctx, tx, w.events); err != nil {
		return err
	}
	for id, rep := range w.reports {
		w.byID[id].report = rep.text
	}
	return s.writeReports(ctx, tx, w.reports)
}

// writeSeen replaces the hot rows of the sighted instances, which are locked.
func (s *Store) writeSeen(ctx context.Context, tx *sqlx.Tx, w *world) error {
	ids := slices.Sorted(maps.Keys(w.seen))
	return chunks(ids, hotChunk, func(part []int64) error {
		text := append([]byte(nil), "INSERT INTO hot ("+hotColumns+") VALUES "...)
		for i, id := range part {
			if i > 0 {
				text = append(text, ',')
			}
			r := w.byID[id]
			text = appendHot(text, id, r.part, r.clock, r.Incarnation, r.seq, w.seen[id])
		}
		text = append(text, replaceHot[s.dialect]...)
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("write %d hot rows: %w", len(part), err)
		}
		return nil
	})
}

var replaceHot = func() map[Dialect]string {
	cols := []string{"part", "clock", "incarnation", "seq", "received_at", "skew", "in_flight", "rps_milli", "latency_us",
		"cpu_milli", "memory"}
	m := map[Dialect]string{}
	for _, d := range []Dialect{MySQL, SQLite} {
		q := d.onConflict("id")
		for i, c := range cols {
			if i > 0 {
				q += ","
			}
			q += c + "=" + d.incoming(c)
		}
		m[d] = q
	}
	return m
}()

func (s *Store) writeInstances(ctx context.Context, tx *sqlx.Tx, rows []*row) error {
	return chunks(rows, writeChunk, func(part []*row) error {
		args := make([]any, 0, len(part)*len(instanceCols))
		for _, r := range part {
			args = instanceArgs(args, r)
		}
		if _, err := tx.ExecContext(ctx, s.dialect.upsert("instance", "id", instanceCols, len(part)), args...); err != nil {
			return fmt.Errorf("write %d instances: %w", len(part), err)
		}
		return nil
	})
}

func (s *Store) writeAddresses(ctx context.Context, tx *sqlx.Tx, w *world) error {
	var taken []*claim
	var freed []string
	for _, addr := range slices.Sorted(maps.Keys(w.addrDirty)) {
		if c := w.addrDirty[addr]; c != nil {
			taken = append(taken, c)
		} else {
			freed = append(freed, addr)
		}
	}
	err := chunks(freed, inChunk, func(part []string) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM address WHERE addr IN (`+marks(len(part))+`)`, anys(part)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("free %d addresses: %w", len(freed), err)
	}
	return chunks(taken, writeChunk, func(part []*claim) error {
		args := make([]any, 0, 3*len(part))
		for _, c := range part {
			args = append(args, c.addr, c.instance, c.claimedAt)
		}
		q := s.dialect.upsert("address", "addr", []string{"addr", "instance", "claimed_at"}, len(part))
		if _, err := tx.ExecContext(ctx, q, args...); err != nil {
			return fmt.Errorf("claim %d addresses: %w", len(part), err)
		}
		return nil
	})
}

// writeServices notes for each service that won or lost a routable instance whether it has any.
func (s *Store) writeServices(ctx context.Context, tx *sqlx.Tx, w *world) error {
	here := map[string]bool{} // those with a routable instance at hand need no question
	for _, r := range w.dirty {
		here[r.Service] = here[r.Service] || r.Liveness.Routable()
	}
	return chunks(sortedKeys(w.services), writeChunk, func(names []string) error {
		found, err := servicesWhere(ctx, tx, `name IN (`+marks(len(names))+`)`, anys(names)...)
		if err != nil {
			return err
		}
		known := map[string]Service{}
		for _, sv := range found {
			known[sv.Name] = sv
		}
		for _, service := range names {
			full := here[service]
			if !full {
				if full, err = hasRoutable(ctx, tx, service); err != nil {
					return err
				}
			}
			sv, ok := known[service]
			if ok && full == (sv.EmptiedAt == 0) {
				continue
			}
			if err := s.writeService(ctx, tx, w, service, sv.CreatedAt, full); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeService writes a new service (createdAt 0) or one that was emptied or filled.
func (s *Store) writeService(ctx context.Context, tx *sqlx.Tx, w *world, service string, createdAt int64, full bool) error {
	if createdAt == 0 {
		createdAt = w.now
		if err := unremove(ctx, tx, removedService, service); err != nil {
			return err
		}
	}
	emptiedAt := w.now
	if full {
		emptiedAt = 0
	}
	q := s.dialect.upsert("service", "name", []string{"name", "created_at", "emptied_at", "revision"}, 1)
	if _, err := tx.ExecContext(ctx, q, service, createdAt, emptiedAt, w.book.next()); err != nil {
		return fmt.Errorf("write service %s: %w", service, err)
	}
	return nil
}

// hasRoutable stops at the first routable instance of the service that it finds.
func hasRoutable(ctx context.Context, tx *sqlx.Tx, service string) (bool, error) {
	var found []int64
	err := tx.SelectContext(ctx, &found, `SELECT id FROM instance WHERE service = ? AND liveness IN ('live', 'unproven') LIMIT 1`,
		service)
	if err != nil {
		return false, fmt.Errorf("look for instances of %s: %w", service, err)
	}
	return len(found) > 0, nil
}

func (s *Store) writeClaims(ctx context.Context, tx *sqlx.Tx, claims []*RouteClaim) error {
	for _, c := range claims {
		if err := unremove(ctx, tx, removedClaim, c.Path); err != nil {
			return err
		}
		q := s.dialect.upsert("route_claim", "path", []string{"path", "service", "claimed_at", "revision"}, 1)
		if _, err := tx.ExecContext(ctx, q, c.Path, c.Service, c.ClaimedAt, c.Revision); err != nil {
			return fmt.Errorf("claim route %s for %s: %w", c.Path, c.Service, err)
		}
	}
	return nil
}

// refusals says for each route that another service owns that it was asked for, unless an instance of the asking service
// has had that route before: one event, not one for each instance. It must run before the instances are written.
func (s *Store) refusals(ctx context.Context, tx *sqlx.Tx, w *world) error {
	order := func(a, b refusal) int {
		return cmp.Or(strings.Compare(a.service, b.service), strings.Compare(a.path, b.path))
	}
	for _, k := range slices.SortedFunc(maps.Keys(w.refused), order) {
		var found []int64
		err := tx.SelectContext(ctx, &found, `SELECT id FROM instance WHERE service = ? AND url IN (?, ?)
			AND liveness IN ('live', 'unproven') LIMIT 1`, k.service, k.path, k.path+"/")
		if err != nil {
			return fmt.Errorf("look for instances of %s at %s: %w", k.service, k.path, err)
		}
		if len(found) == 0 {
			w.refuse(k)
		}
	}
	return nil
}

func (s *Store) writeReports(ctx context.Context, tx *sqlx.Tx, reports map[int64]report) error {
	for _, id := range slices.Sorted(maps.Keys(reports)) {
		rep := reports[id]
		if len(rep.text) > maxText {
			continue
		}
		q := s.dialect.upsert("agent_report", "id", []string{"id", "report", "received_at"}, 1)
		if _, err := tx.ExecContext(ctx, q, id, string(rep.text), rep.receivedAt); err != nil {
			return fmt.Errorf("write the report of agent %d: %w", id, err)
		}
	}
	return nil
}
