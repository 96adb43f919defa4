package registry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// AcquireLease takes the lease of name for holder if nobody else holds it, and raises its epoch. Expiry is in the
// database's time; the holder counts ttl on its own monotonic clock from before the call. ok is false when another holder's
// lease has not expired; l then has its Holder, and nothing else to rely on. A holder that asks again for its own gets a new epoch.
func (s *Store) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (l Lease, ok bool, err error) {
	if name == "" || holder == "" || ttl <= 0 {
		return Lease{}, false, fmt.Errorf("registry: acquire lease %q for %q: name, holder and a positive ttl are needed (%v)",
			name, holder, ttl)
	}
	free, held, err := s.leaseFree(ctx, name, holder)
	if err != nil || !free {
		return Lease{Name: name, Holder: held}, false, wrapLease("acquire", name, err)
	}
	err = s.write(ctx, func(tx *sqlx.Tx) error {
		l, ok, err = s.acquire(ctx, tx, Lease{Name: name, Holder: holder, TTL: ttl})
		return err
	})
	if err != nil {
		return Lease{}, false, wrapLease("acquire", name, err)
	}
	return l, ok, nil
}

// leaseFree looks without a lock, so that standbys cost nothing.
func (s *Store) leaseFree(ctx context.Context, name, holder string) (free bool, held string, err error) {
	q := `SELECT holder, expires_at <= ` + s.dialect.nowMicros() + ` OR holder = ? FROM lease WHERE name = ?`
	err = s.db.QueryRowContext(ctx, q, holder, name).Scan(&held, &free)
	if errors.Is(err, sql.ErrNoRows) {
		return true, "", nil
	}
	return free, held, err
}

func (s *Store) acquire(ctx context.Context, tx *sqlx.Tx, l Lease) (Lease, bool, error) {
	q := insert("lease", []string{"name", "holder", "epoch", "expires_at"}, 1) + s.dialect.onConflict("name") + `epoch = epoch`
	if s.dialect == SQLite {
		q = insert("lease", []string{"name", "holder", "epoch", "expires_at"}, 1) + ` ON CONFLICT (name) DO NOTHING`
	}
	if _, err := tx.ExecContext(ctx, q, l.Name, "", 0, 0); err != nil {
		return Lease{}, false, err
	}
	var free bool
	var held string
	err := tx.QueryRowContext(ctx, `SELECT holder, epoch, expires_at <= `+s.dialect.nowMicros()+` OR holder = ? FROM lease WHERE name = ?`+
		s.dialect.forUpdate(), l.Holder, l.Name).Scan(&held, &l.Epoch, &free)
	if err != nil || !free {
		return Lease{Name: l.Name, Holder: held}, false, err
	}
	l.Epoch++
	_, err = tx.ExecContext(ctx, `UPDATE lease SET holder = ?, epoch = ?, expires_at = `+s.dialect.nowMicros()+` + ? WHERE name = ?`,
		l.Holder, l.Epoch, l.TTL.Microseconds(), l.Name)
	return l, err == nil, err
}

// RenewLease puts the expiry of a lease that is still held at now + TTL. ErrFenced: it expired or was taken over; the
// holder must stop what it does under it.
func (s *Store) RenewLease(ctx context.Context, l Lease) error {
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		if err := s.holdLease(ctx, tx, l); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE lease SET expires_at = `+s.dialect.nowMicros()+` + ? WHERE name = ?`,
			l.TTL.Microseconds(), l.Name)
		return err
	})
	return wrapLease("renew", l.Name, err)
}

// ReleaseLease lets others take the lease at once. A lease that is held no more is left alone.
func (s *Store) ReleaseLease(ctx context.Context, l Lease) error {
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE lease SET expires_at = 0 WHERE name = ? AND holder = ? AND epoch = ?`,
			l.Name, l.Holder, l.Epoch)
		return err
	})
	return wrapLease("release", l.Name, err)
}

// RaiseEpoch raises the epoch of a held lease to atLeast, above what topic or agents have seen. It returns the lease to go
// on with; a lower atLeast changes nothing.
func (s *Store) RaiseEpoch(ctx context.Context, l Lease, atLeast int64) (Lease, error) {
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		if err := s.holdLease(ctx, tx, l); err != nil || atLeast <= l.Epoch {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE lease SET epoch = ? WHERE name = ?`, atLeast, l.Name)
		return err
	})
	if err != nil {
		return l, wrapLease("raise the epoch of", l.Name, err)
	}
	l.Epoch = max(l.Epoch, atLeast)
	return l, nil
}

// holdLease locks the lease row and fails with ErrFenced unless the lease is held: same holder and epoch, not expired.
func (s *Store) holdLease(ctx context.Context, tx *sqlx.Tx, l Lease) error {
	var holder string
	var epoch int64
	var valid bool
	err := tx.QueryRowContext(ctx, `SELECT holder, epoch, expires_at > `+s.dialect.nowMicros()+` FROM lease WHERE name = ?`+
		s.dialect.forUpdate(), l.Name).Scan(&holder, &epoch, &valid)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("there is no such lease: %w", ErrFenced)
	case err != nil:
		return err
	case holder != l.Holder || epoch != l.Epoch:
		return fmt.Errorf("%s holds it in epoch %d: %w", holder, epoch, ErrFenced)
	case !valid:
		return fmt.Errorf("it has expired: %w", ErrFenced)
	}
	return nil
}

func wrapLease(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("registry: %s lease %s: %w", what, name, err)
}
