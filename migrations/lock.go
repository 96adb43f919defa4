package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// lockName is server-wide, so it carries the database.
const lockName = `CONCAT('upstrand.migrate.', MD5(DATABASE()))`

// withLock runs fn under MySQL's GET_LOCK, held by a connection of its own. The server gives it back by itself when the
// session ends: nothing stays locked after a kill -9. It covers all of fn, also where goose looks for pending files and
// makes its table, which its own session locker does not.
func withLock(ctx context.Context, db *sql.DB, fn func() error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }() // goes back to the pool
	if err := lock(ctx, conn); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock(context.WithoutCancel(ctx), conn)) }()
	return fn()
}

// lock asks again every second, since a connection has a read timeout.
func lock(ctx context.Context, conn *sql.Conn) error {
	for deadline := time.Now().Add(lockWait); ; {
		var got sql.NullInt64
		if err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(`+lockName+`, 1)`).Scan(&got); err != nil {
			return fmt.Errorf("take the migration lock: %w", err)
		}
		if got.Int64 == 1 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("take the migration lock: another process has held it for %v", lockWait)
		}
	}
}

func unlock(ctx context.Context, conn *sql.Conn) error {
	var freed sql.NullInt64
	if err := conn.QueryRowContext(ctx, `SELECT RELEASE_LOCK(`+lockName+`)`).Scan(&freed); err != nil {
		return fmt.Errorf("release the migration lock: %w", err)
	}
	if freed.Int64 != 1 {
		return errors.New("release the migration lock: this session did not hold it")
	}
	return nil
}
