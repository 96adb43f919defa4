package registry

import (
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
)

// loader fills a world with what the rules will look at, taking the locks in order.
type loader struct {
	store *Store
	tx    *sqlx.Tx
	w     *world
}

// load locks the hot rows of the sighted instances, then the revision, then reads: the sighted ones and the condemned
// as they stand now, the addresses concerned with their owners, and the routes.
func (l *loader) load(ctx context.Context, sightings []*Sighting, condemned []int64) error {
	names := namesOf(sightings)
	ids, err := l.ids(ctx, names)
	if err != nil {
		return err
	}
	if err := l.lockHot(ctx, ids); err != nil {
		return err
	}
	if l.w.book, err = l.store.lockLedger(ctx, l.tx); err != nil {
		return err
	}
	if err := l.named(ctx, names); err != nil {
		return err
	}
	if err := rowsByID(ctx, l.tx, condemned, l.w.add); err != nil {
		return err
	}
	if len(sightings) == 0 {
		return nil
	}
	if err := l.addresses(ctx, sightings); err != nil {
		return err
	}
	return l.routes(ctx, sightings)
}

func namesOf(sightings []*Sighting) []name {
	seen := make(map[name]bool, len(sightings))
	names := make([]name, 0, len(sightings))
	for _, s := range sightings {
		if n := (name{s.Service, s.ID}); !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	return names
}

func (l *loader) ids(ctx context.Context, names []name) ([]int64, error) {
	var ids []int64
	err := chunks(names, inChunk, func(part []name) error {
		where, args := whereNames(part, "")
		var found []int64
		if err := l.tx.SelectContext(ctx, &found, `SELECT id FROM instance WHERE `+where, args...); err != nil {
			return fmt.Errorf("find %d instances: %w", len(part), err)
		}
		ids = append(ids, found...)
		return nil
	})
	slices.Sort(ids)
	return ids, err
}

// lockHot keeps the hot rows as they are read next: another stream's steady beat would otherwise be lost under ours.
func (l *loader) lockHot(ctx context.Context, ids []int64) error {
	if l.store.dialect == SQLite {
		return nil // the one writer holds everything
	}
	return chunks(ids, inChunk, func(part []int64) error {
		var got []int64
		err := l.tx.SelectContext(ctx, &got, `SELECT id FROM hot WHERE id IN (`+marks(len(part))+`) ORDER BY id FOR UPDATE`, anys(part)...)
		if err != nil {
			return fmt.Errorf("lock %d hot rows: %w", len(part), err)
		}
		return nil
	})
}

func (l *loader) named(ctx context.Context, names []name) error {
	return chunks(names, inChunk, func(part []name) error {
		where, args := whereNames(part, "i.")
		if err := queryRows(ctx, l.tx, selectRow+` WHERE `+where, args, l.w.add); err != nil {
			return fmt.Errorf("load %d instances: %w", len(part), err)
		}
		return nil
	})
}

// addresses loads the claims on the addresses that are beaten from or left, their owners, and the clocks by which these
// are judged.
func (l *loader) addresses(ctx context.Context, sightings []*Sighting) error {
	wanted := map[string]bool{}
	for _, s := range sightings {
		if s.Status != StatusLeaving && !IsAgent(s.Service) {
			wanted[address(&s.Attrs)] = true
		}
	}
	for _, r := range l.w.byID {
		if !IsAgent(r.Service) {
			wanted[address(&r.Attrs)] = true
		}
	}
	delete(wanted, "")
	var owners []int64
	err := chunks(sortedKeys(wanted), inChunk, func(part []string) error {
		rows, err := l.tx.QueryContext(ctx, `SELECT addr, instance, claimed_at FROM address WHERE addr IN (`+marks(len(part))+`)`,
			anys(part)...)
		if err != nil {
			return fmt.Errorf("load %d addresses: %w", len(part), err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			c := &claim{}
			if err := rows.Scan(&c.addr, &c.instance, &c.claimedAt); err != nil {
				return fmt.Errorf("load addresses: %w", err)
			}
			l.w.addrs[c.addr] = c
			if l.w.byID[c.instance] == nil {
				owners = append(owners, c.instance)
			}
		}
		return rows.Err()
	})
	if err != nil {
		return err
	}
	if err := rowsByID(ctx, l.tx, owners, l.w.add); err != nil {
		return err
	}
	return l.clocks(ctx)
}

func (l *loader) clocks(ctx context.Context) error {
	rows, err := l.tx.QueryContext(ctx, `SELECT part, clock FROM stream`)
	if err != nil {
		return fmt.Errorf("load the clocks: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var part int32
		var clock int64
		if err := rows.Scan(&part, &clock); err != nil {
			return fmt.Errorf("load the clocks: %w", err)
		}
		l.w.clocks[part] = clock
	}
	return rows.Err()
}

func (l *loader) routes(ctx context.Context, sightings []*Sighting) error {
	wanted := map[string]bool{}
	for _, s := range sightings {
		if s.Status != StatusLeaving && !IsAgent(s.Service) {
			wanted[RoutePath(s.Attrs.URL)] = true
		}
	}
	delete(wanted, "")
	err := chunks(sortedKeys(wanted), inChunk, func(part []string) error {
		claims, err := claimsWhere(ctx, l.tx, `path IN (`+marks(len(part))+`)`, anys(part)...)
		for i := range claims {
			l.w.claims[claims[i].Path] = &claims[i]
		}
		return err
	})
	if err != nil {
		return err
	}
	asking := map[string]bool{}
	for _, s := range sightings {
		if path := RoutePath(s.Attrs.URL); wanted[path] && l.w.claims[path] == nil && s.Status != StatusLeaving && !IsAgent(s.Service) {
			asking[s.Service] = true
		}
	}
	return countRoutes(ctx, l.tx, l.w, sortedKeys(asking))
}

// countRoutes finds out how many routes the services have.
func countRoutes(ctx context.Context, tx *sqlx.Tx, w *world, services []string) error {
	return chunks(services, inChunk, func(part []string) error {
		var found []struct {
			Service string `db:"service"`
			N       int    `db:"n"`
		}
		err := tx.SelectContext(ctx, &found, `SELECT service, COUNT(*) AS n FROM route_claim WHERE service IN (`+marks(len(part))+`) GROUP BY service`, anys(part)...)
		if err != nil {
			return fmt.Errorf("count the routes of %d services: %w", len(part), err)
		}
		for _, f := range found {
			w.routes[f.Service] = f.N
		}
		return nil
	})
}

func sortedKeys(set map[string]bool) []string {
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
