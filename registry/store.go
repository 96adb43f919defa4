package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jmoiron/sqlx"
)

// ErrReload: it is unknown whether a transaction was committed (the connection was lost while it was). It wraps ErrFenced,
// since the caller does the same: drop the Stream, open it again and go on at the offset that the database holds.
var ErrReload = fmt.Errorf("the outcome of a commit is unknown, so the state must be read again: %w", ErrFenced)

// ErrTooOld: the changes since that revision can't be told, because the registry has forgotten some of them or is itself
// older (a restored database). Read a Snapshot instead.
var ErrTooOld = errors.New("changes since that revision are not known any more")

// Options are the settings of a Store. The zero value means the defaults.
type Options struct {
	// UnprovenLimit is how much stream time instances are held unproven before they are released; default 5 min.
	UnprovenLimit time.Duration
	// ReleaseShare is the share of a service's unproven instances that is released per second of stream time once the
	// limit has passed, at least one; default 0.05.
	ReleaseShare float64
	// RejectedKeep is how many unusable records are kept per partition, the newest ones; default 1000.
	RejectedKeep int
	// Attempts is how often a transaction is tried when others are in its way; default 8.
	Attempts int
	// Now is the wall clock for what is shown to people and for retention; default time.Now. Nobody is judged by it.
	Now func() time.Time
}

func (o *Options) fill() error {
	if o.UnprovenLimit == 0 {
		o.UnprovenLimit = 5 * time.Minute
	}
	if o.ReleaseShare == 0 {
		o.ReleaseShare = 0.05
	}
	if o.RejectedKeep == 0 {
		o.RejectedKeep = 1000
	}
	if o.Attempts == 0 {
		o.Attempts = 8
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case o.UnprovenLimit < 0:
		return fmt.Errorf("registry: UnprovenLimit %v is negative", o.UnprovenLimit)
	case o.ReleaseShare < 0 || o.ReleaseShare > 1:
		return fmt.Errorf("registry: ReleaseShare %v, want 0 to 1", o.ReleaseShare)
	case o.RejectedKeep < 0 || o.Attempts < 0:
		return fmt.Errorf("registry: RejectedKeep %d or Attempts %d is negative", o.RejectedKeep, o.Attempts)
	}
	return nil
}

// Store is the registry in a database. It is safe for concurrent use and keeps no state of its own; the Streams that it
// opens do.
type Store struct {
	db      *sqlx.DB
	dialect Dialect
	opt     Options
	// writer queues this Store's SQLite transactions in the order of arrival, which SQLite's own polling does not.
	writer chan struct{}
}

// Open returns a Store over a database whose schema is current (see package migrations). The pool stays the caller's, who
// closes it after the last use of the Store. Nothing is read yet.
func Open(db *sqlx.DB, d Dialect, opt Options) (*Store, error) {
	if db == nil {
		return nil, errors.New("registry: no database")
	}
	if d != MySQL && d != SQLite {
		return nil, fmt.Errorf("registry: unknown dialect %d", d)
	}
	if err := opt.fill(); err != nil {
		return nil, err
	}
	return &Store{db: db, dialect: d, opt: opt, writer: make(chan struct{}, 1)}, nil
}

func (s *Store) now() int64 { return s.opt.Now().UnixMicro() }

// write runs fn in one transaction, again from the start when another transaction was in its way. fn must keep its
// results to itself until write returns nil.
func (s *Store) write(ctx context.Context, fn func(tx *sqlx.Tx) error) error {
	return s.again(ctx, func() error { return s.writeOnce(ctx, fn) })
}

// exec runs a statement that is a transaction of its own, and says how many rows it changed: no lock of it is held while
// the database waits for this process, which may have been stopped. As write, it tries again when another transaction was
// in its way. After another error it may have been done, or be done yet: a server goes on with what was hung up on.
func (s *Store) exec(ctx context.Context, q string, args ...any) (n int64, err error) {
	err = s.again(ctx, func() error {
		done, err := s.turn(ctx)
		if err != nil {
			return err
		}
		defer done()
		res, err := s.db.ExecContext(ctx, q, args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}

// again runs one transaction until no other is in its way, at most as often as Attempts says.
func (s *Store) again(ctx context.Context, once func() error) error {
	for attempt := 1; ; attempt++ {
		err := once()
		if err == nil || attempt >= s.opt.Attempts || !retryable(err) {
			return err
		}
		// Full jitter: those who collided come back one by one.
		wait := time.NewTimer(rand.N(time.Duration(attempt) * 8 * time.Millisecond))
		select {
		case <-ctx.Done():
			wait.Stop()
			return errors.Join(ctx.Err(), err)
		case <-wait.C:
		}
	}
}

// turn waits until this Store may write, which done ends.
func (s *Store) turn(ctx context.Context) (done func(), err error) {
	if s.dialect != SQLite {
		return func() {}, nil
	}
	select {
	case s.writer <- struct{}{}:
		return func() { <-s.writer }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Store) writeOnce(ctx context.Context, fn func(tx *sqlx.Tx) error) error {
	done, err := s.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	tx, err := s.db.BeginTxx(ctx, s.dialect.writeTx())
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // the error that matters is fn's; a connection that can't roll back is dropped by the pool
		return err
	}
	if err := tx.Commit(); err != nil {
		if retryable(err) {
			return fmt.Errorf("commit: %w", err)
		}
		return fmt.Errorf("%w: commit: %w", ErrReload, err)
	}
	return nil
}

// read runs fn in one read-only transaction: everything that it reads is of one moment.
func (s *Store) read(ctx context.Context, fn func(tx *sqlx.Tx) error) error {
	tx, err := s.db.BeginTxx(ctx, s.dialect.readTx())
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	return fn(tx)
}
