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
	for try := 0; ; try++ {
		seen, free, err := s.lookAtLease(ctx, name, holder)
		if err != nil || !free {
			return Lease{Name: name, Holder: seen.Holder}, false, wrapLease("acquire", name, err)
		}
		if try == s.opt.Attempts {
			return Lease{}, false, wrapLease("acquire", name, fmt.Errorf("others were quicker %d times, and it is free again", try))
		}
		l = Lease{Name: name, Holder: holder, Epoch: seen.Epoch + 1, TTL: ttl}
		ok, err = s.takeLease(ctx, l, seen.Epoch)
		switch {
		case err != nil:
			return Lease{}, false, wrapLease("acquire", name, err)
		case ok:
			return l, true, nil
		}
	}
}

// lookAtLease looks without a lock, so that standbys cost nothing, and says whether holder may take the lease. One that was
// never held is there afterwards, in epoch 0.
func (s *Store) lookAtLease(ctx context.Context, name, holder string) (l Lease, free bool, err error) {
	l.Name = name
	q := `SELECT holder, epoch, expires_at <= ` + s.dialect.nowMicros() + ` OR holder = ? FROM lease WHERE name = ?`
	err = s.db.QueryRowContext(ctx, q, holder, name).Scan(&l.Holder, &l.Epoch, &free)
	if !errors.Is(err, sql.ErrNoRows) {
		return l, free, err
	}
	q = insert("lease", []string{"name", "holder", "epoch", "expires_at"}, 1) + s.dialect.onConflict("name") + `epoch = epoch`
	_, err = s.exec(ctx, q, name, "", 0, 0)
	return l, true, err
}

// takeLease makes l of a lease that was seen free in an epoch, if it still is in that epoch and free. So l's epoch is
// nobody else's, and a take that stood at a lock until long after its caller gave up does not follow a later one.
func (s *Store) takeLease(ctx context.Context, l Lease, seen int64) (bool, error) {
	now := s.dialect.nowMicros()
	n, err := s.exec(ctx, `UPDATE lease SET holder = ?, epoch = ?, expires_at = `+now+` + ?
		WHERE name = ? AND epoch = ? AND (expires_at <= `+now+` OR holder = ?)`,
		l.Holder, l.Epoch, l.TTL.Microseconds(), l.Name, seen, l.Holder)
	return n > 0, err
}

// RenewLease puts the expiry of a lease that is still held at now + TTL. ErrFenced: it expired or was taken over; the
// holder must stop what it does under it.
func (s *Store) RenewLease(ctx context.Context, l Lease) error {
	return wrapLease("renew", l.Name, s.setHeld(ctx, l, `expires_at = `+s.dialect.nowMicros()+` + ?`, l.TTL.Microseconds()))
}

// ReleaseLease lets others take the lease at once. A lease that is held no more is left alone.
func (s *Store) ReleaseLease(ctx context.Context, l Lease) error {
	_, err := s.exec(ctx, `UPDATE lease SET expires_at = 0 WHERE name = ? AND holder = ? AND epoch = ?`, l.Name, l.Holder, l.Epoch)
	return wrapLease("release", l.Name, err)
}

// RaiseEpoch raises the epoch of a held lease to atLeast, above what topic or agents have seen. It returns the lease to go
// on with; a lower atLeast changes nothing.
func (s *Store) RaiseEpoch(ctx context.Context, l Lease, atLeast int64) (Lease, error) {
	var err error
	if atLeast > l.Epoch {
		err = s.setHeld(ctx, l, `epoch = ?`, atLeast)
	} else {
		err = s.held(ctx, s.db, l, "")
	}
	if err != nil {
		return l, wrapLease("raise the epoch of", l.Name, err)
	}
	l.Epoch = max(l.Epoch, atLeast)
	return l, nil
}

// setHeld changes the row of a lease by one statement that finds it only while the lease is held: same holder and epoch,
// not expired. It fails with ErrFenced otherwise.
func (s *Store) setHeld(ctx context.Context, l Lease, set string, value int64) error {
	n, err := s.exec(ctx, `UPDATE lease SET `+set+` WHERE name = ? AND holder = ? AND epoch = ? AND expires_at > `+s.dialect.nowMicros(),
		value, l.Name, l.Holder, l.Epoch)
	if err != nil || n > 0 {
		return err
	}
	if err := s.held(ctx, s.db, l, ""); err != nil {
		return err
	}
	return errExpired // a moment ago it was not held, whatever the database's clock says by now
}

// holdLease locks the lease row until the transaction ends, and fails with ErrFenced unless the lease is held.
func (s *Store) holdLease(ctx context.Context, tx *sqlx.Tx, l Lease) error {
	return s.held(ctx, tx, l, s.dialect.forUpdate())
}

var errExpired = fmt.Errorf("it has expired: %w", ErrFenced)

func (s *Store) held(ctx context.Context, q sqlx.QueryerContext, l Lease, lock string) error {
	var holder string
	var epoch int64
	var valid bool
	err := q.QueryRowxContext(ctx, `SELECT holder, epoch, expires_at > `+s.dialect.nowMicros()+` FROM lease WHERE name = ?`+lock,
		l.Name).Scan(&holder, &epoch, &valid)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("there is no such lease: %w", ErrFenced)
	case err != nil:
		return err
	case holder != l.Holder || epoch != l.Epoch:
		return fmt.Errorf("%s holds it in epoch %d: %w", holder, epoch, ErrFenced)
	case !valid:
		return errExpired
	}
	return nil
}

func wrapLease(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("registry: %s lease %s: %w", what, name, err)
}
