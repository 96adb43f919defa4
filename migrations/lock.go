package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3/lock"
)

// namedLock is MySQL's GET_LOCK, which the server gives back by itself when the session ends: nothing stays locked after
// a kill -9. Its name is server-wide, so it carries the database.
type namedLock struct{ wait time.Duration }

var _ lock.SessionLocker = namedLock{}

const lockName = `CONCAT('upstrand.migrate.', MD5(DATABASE()))`

func (l namedLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	var got sql.NullInt64
	err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(`+lockName+`, ?)`, int(l.wait.Seconds())).Scan(&got)
	if err != nil {
		return fmt.Errorf("take the migration lock: %w", err)
	}
	if got.Int64 != 1 {
		return fmt.Errorf("take the migration lock: another process has held it for %v", l.wait)
	}
	return nil
}

func (l namedLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	var freed sql.NullInt64
	if err := conn.QueryRowContext(ctx, `SELECT RELEASE_LOCK(`+lockName+`)`).Scan(&freed); err != nil {
		return fmt.Errorf("release the migration lock: %w", err)
	}
	if freed.Int64 != 1 {
		return errors.New("release the migration lock: this session did not hold it")
	}
	return nil
}
