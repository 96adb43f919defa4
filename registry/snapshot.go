package registry

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// What removal rows are about.
const (
	removedService = "service"
	removedClaim   = "claim"
)

// Revision is the registry revision: it rises with everything that routing is built from, once per transaction.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	n, err := revisionOf(ctx, s.db)
	if err != nil {
		return 0, fmt.Errorf("registry: %w", err)
	}
	return n, nil
}

// Snapshot reads all that the topology is built from, of one moment: the routable instances in the order of their dense
// keys, services and route claims by name, and the declared files. It reads no hot row.
func (s *Store) Snapshot(ctx context.Context) (Snapshot, error) {
	var snap Snapshot
	err := s.read(ctx, func(tx *sqlx.Tx) (err error) {
		if snap.Revision, err = revisionOf(ctx, tx); err != nil {
			return err
		}
		if snap.Instances, err = instancesWhere(ctx, tx, `i.liveness IN ('live', 'unproven')`); err != nil {
			return err
		}
		if snap.Services, err = servicesWhere(ctx, tx, `1 = 1`); err != nil {
			return err
		}
		if snap.Claims, err = claimsWhere(ctx, tx, `1 = 1`); err != nil {
			return err
		}
		declared, err := declaredAll(ctx, tx)
		snap.Declared = &declared
		return err
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("registry: snapshot: %w", err)
	}
	return snap, nil
}

// Changes reads what changed after revision since, of one moment: instances of any liveness, services and claims as they
// are now, the names of those removed, and the declared files if they did. The error wraps ErrTooOld when that can't be told; read a Snapshot then.
func (s *Store) Changes(ctx context.Context, since int64) (Snapshot, error) {
	var snap Snapshot
	err := s.read(ctx, func(tx *sqlx.Tx) (err error) {
		if snap.Revision, err = revisionOf(ctx, tx); err != nil {
			return err
		}
		var forgotten int64
		if err := tx.GetContext(ctx, &forgotten, `SELECT n FROM revision WHERE id = 2`); err != nil {
			return err
		}
		if since < forgotten || since > snap.Revision {
			return fmt.Errorf("known are %d to %d: %w", forgotten, snap.Revision, ErrTooOld)
		}
		if since == snap.Revision {
			return nil
		}
		if snap.Instances, err = instancesWhere(ctx, tx, `i.revision > ?`, since); err != nil {
			return err
		}
		if snap.Services, err = servicesWhere(ctx, tx, `revision > ?`, since); err != nil {
			return err
		}
		if snap.Claims, err = claimsWhere(ctx, tx, `revision > ?`, since); err != nil {
			return err
		}
		if snap.RemovedServices, err = removedSince(ctx, tx, removedService, since); err != nil {
			return err
		}
		if snap.RemovedClaims, err = removedSince(ctx, tx, removedClaim, since); err != nil {
			return err
		}
		snap.Declared, err = declaredSince(ctx, tx, since)
		return err
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("registry: changes since revision %d: %w", since, err)
	}
	return snap, nil
}

// Streams lists the partitions with their positions and clocks.
func (s *Store) Streams(ctx context.Context) ([]StreamState, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT part, next_offset, log_end, clock, owner, updated_at FROM stream ORDER BY part`)
	if err != nil {
		return nil, fmt.Errorf("registry: streams: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var list []StreamState
	for rows.Next() {
		var st StreamState
		var clock int64
		if err := rows.Scan(&st.Part, &st.NextOffset, &st.LogEnd, &clock, &st.Owner, &st.UpdatedAt); err != nil {
			return nil, fmt.Errorf("registry: streams: %w", err)
		}
		st.Clock = micros(clock)
		list = append(list, st)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("registry: streams: %w", err)
	}
	return list, nil
}

func instancesWhere(ctx context.Context, tx *sqlx.Tx, where string, args ...any) ([]Instance, error) {
	rows, err := tx.QueryContext(ctx, selectInstance+` FROM instance i WHERE `+where+` ORDER BY i.id`, args...)
	if err != nil {
		return nil, fmt.Errorf("read instances: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var list []Instance
	for rows.Next() {
		var r row
		if err := scanInstance(rows, &r); err != nil {
			return nil, fmt.Errorf("read instances: %w", err)
		}
		list = append(list, r.Instance)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read instances: %w", err)
	}
	return list, nil
}

func servicesWhere(ctx context.Context, tx *sqlx.Tx, where string, args ...any) ([]Service, error) {
	rows, err := tx.QueryContext(ctx, `SELECT name, created_at, emptied_at, revision FROM service WHERE `+where+` ORDER BY name`,
		args...)
	if err != nil {
		return nil, fmt.Errorf("read services: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var list []Service
	for rows.Next() {
		var sv Service
		if err := rows.Scan(&sv.Name, &sv.CreatedAt, &sv.EmptiedAt, &sv.Revision); err != nil {
			return nil, fmt.Errorf("read services: %w", err)
		}
		list = append(list, sv)
	}
	return list, rows.Err()
}

func claimsWhere(ctx context.Context, tx *sqlx.Tx, where string, args ...any) ([]RouteClaim, error) {
	rows, err := tx.QueryContext(ctx, `SELECT path, service, claimed_at, revision FROM route_claim WHERE `+where+` ORDER BY path`,
		args...)
	if err != nil {
		return nil, fmt.Errorf("read route claims: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var list []RouteClaim
	for rows.Next() {
		var c RouteClaim
		if err := rows.Scan(&c.Path, &c.Service, &c.ClaimedAt, &c.Revision); err != nil {
			return nil, fmt.Errorf("read route claims: %w", err)
		}
		list = append(list, c)
	}
	return list, rows.Err()
}

func removedSince(ctx context.Context, tx *sqlx.Tx, kind string, since int64) ([]string, error) {
	var names []string
	err := tx.SelectContext(ctx, &names, `SELECT name FROM removal WHERE kind = ? AND revision > ? ORDER BY name`, kind, since)
	if err != nil {
		return nil, fmt.Errorf("read removals: %w", err)
	}
	return names, nil
}

// unremove forgets that a service or claim was removed, since it is there again.
func unremove(ctx context.Context, tx *sqlx.Tx, kind, name string) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM removal WHERE kind = ? AND name = ?`, kind, name); err != nil {
		return fmt.Errorf("forget the removal of %s %s: %w", kind, name, err)
	}
	return nil
}
