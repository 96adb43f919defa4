// Package migrations holds the schema of the registry as numbered SQL files, for MySQL/MariaDB and for SQLite with the
// same numbers, and runs them: forward only, one process at a time.
//
// It is not the registry: it knows nothing of what the tables mean, and no role runs it but `upstrand migrate`.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
)

// The dialects.
const (
	MySQL  = "mysql" // MySQL 8 and MariaDB 10.11 or newer
	SQLite = "sqlite"
)

// Errors of Check.
var (
	// ErrPending: `upstrand migrate` has to run before the roles of this binary can.
	ErrPending = errors.New("the schema is older than this binary needs: run migrate")
	// ErrNewer: the schema was made by a newer binary. The roles of an older one may go on, since migrations only add
	// while versions run side by side; whether they start is for the caller to say.
	ErrNewer = errors.New("the schema is newer than this binary")
)

//go:embed mysql/*.sql sqlite/*.sql
var files embed.FS

// lockWait is how long Up waits for another process that migrates.
const lockWait = 5 * time.Minute

// Migration is one numbered file and when it was applied; the zero time means not yet.
type Migration struct {
	Version   int64
	Name      string
	AppliedAt time.Time
}

// Up applies what is pending and returns the names of the files that it applied, none when the schema is current. Several
// processes may call it at once: one applies, the others wait for it (at most 5 minutes) and find nothing to do. It may
// be called again after a crash. On MySQL the pool must allow at least two connections.
func Up(ctx context.Context, db *sql.DB, dialect string) ([]string, error) {
	p, err := provider(db, dialect)
	if err != nil {
		return nil, err
	}
	var results []*goose.MigrationResult
	if dialect == MySQL {
		err = withLock(ctx, db, func() (err error) { results, err = p.Up(ctx); return err })
	} else {
		results, err = upSQLite(ctx, p)
	}
	if err != nil {
		return nil, fmt.Errorf("migrations: up: %w", err)
	}
	applied := make([]string, 0, len(results))
	for _, r := range results {
		applied = append(applied, r.Source.Path)
	}
	return applied, nil
}

// upSQLite runs the provider without a lock, since SQLite has none that spans transactions. But each file is one
// transaction together with the row that says it is done, and can't run twice: whoever comes second fails, rolls back,
// looks again and finds it done.
func upSQLite(ctx context.Context, p *goose.Provider) ([]*goose.MigrationResult, error) {
	var applied []*goose.MigrationResult
	deadline := time.Now().Add(lockWait)
	for failed := 1; ; failed++ {
		results, err := p.Up(ctx)
		applied = append(applied, results...)
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			applied = append(applied, partial.Applied...)
		}
		if err == nil {
			return applied, nil
		}
		pending, perr := p.HasPending(ctx)
		if perr == nil && pending && !busy(err) && failed > 2 || time.Now().After(deadline) {
			return applied, err // nobody else has done it: the file itself fails
		}
		select {
		case <-ctx.Done():
			return applied, errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// busy reports whether SQLite refused because another process writes.
func busy(err error) bool {
	var lite interface{ Code() int } // the driver's error; production does not link the driver
	return errors.As(err, &lite) && (lite.Code()&0xff == 5 || lite.Code()&0xff == 6)
}

// Status lists every migration that this binary knows, in order. It only reads.
func Status(ctx context.Context, db *sql.DB, dialect string) ([]Migration, error) {
	p, err := provider(db, dialect)
	if err != nil {
		return nil, err
	}
	at, err := appliedAt(ctx, db, dialect)
	if err != nil {
		return nil, fmt.Errorf("migrations: status: %w", err)
	}
	var list []Migration
	for _, s := range p.ListSources() {
		list = append(list, Migration{Version: s.Version, Name: s.Path, AppliedAt: at[s.Version]})
	}
	return list, nil
}

// appliedAt reads when versions were applied, whatever the driver makes of dates.
func appliedAt(ctx context.Context, db *sql.DB, dialect string) (map[int64]time.Time, error) {
	exists, err := hasVersionTable(ctx, db, dialect)
	if err != nil || !exists {
		return nil, err
	}
	seconds := `CAST(UNIX_TIMESTAMP(tstamp) AS SIGNED)`
	if dialect == SQLite {
		seconds = `CAST(strftime('%s', tstamp) AS INTEGER)`
	}
	rows, err := db.QueryContext(ctx, `SELECT version_id, `+seconds+` FROM `+goose.DefaultTablename+` WHERE is_applied = 1`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	at := map[int64]time.Time{}
	for rows.Next() {
		var version, sec int64
		if err := rows.Scan(&version, &sec); err != nil {
			return nil, err
		}
		at[version] = time.Unix(sec, 0).UTC()
	}
	return at, rows.Err()
}

// Check reports whether the schema is what this binary needs: nil, an error that wraps ErrPending or ErrNewer, or what
// kept it from finding out. It only reads.
func Check(ctx context.Context, db *sql.DB, dialect string) error {
	p, err := provider(db, dialect)
	if err != nil {
		return err
	}
	sources := p.ListSources()
	want := sources[len(sources)-1].Version
	exists, err := hasVersionTable(ctx, db, dialect)
	if err != nil {
		return fmt.Errorf("migrations: check: %w", err)
	}
	if !exists {
		return fmt.Errorf("migrations: schema is at 0, want %d: %w", want, ErrPending)
	}
	var have int64
	const q = `SELECT COALESCE(MAX(version_id), 0) FROM ` + goose.DefaultTablename + ` WHERE is_applied = 1`
	if err := db.QueryRowContext(ctx, q).Scan(&have); err != nil {
		return fmt.Errorf("migrations: check: %w", err)
	}
	switch {
	case have < want:
		return fmt.Errorf("migrations: schema is at %d, want %d: %w", have, want, ErrPending)
	case have > want:
		return fmt.Errorf("migrations: schema is at %d, want %d: %w", have, want, ErrNewer)
	}
	return nil
}

func hasVersionTable(ctx context.Context, db *sql.DB, dialect string) (bool, error) {
	q := `SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?`
	if dialect == SQLite {
		q = `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?`
	}
	var n int
	err := db.QueryRowContext(ctx, q, goose.DefaultTablename).Scan(&n)
	return n > 0, err
}

func provider(db *sql.DB, dialect string) (*goose.Provider, error) {
	var gd goose.Dialect
	switch dialect {
	case MySQL:
		gd = goose.DialectMySQL
	case SQLite:
		gd = goose.DialectSQLite3
	default:
		return nil, fmt.Errorf("migrations: unknown dialect %q, want %q or %q", dialect, MySQL, SQLite)
	}
	sub, err := fs.Sub(files, dialect)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	p, err := goose.NewProvider(gd, db, sub, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("migrations: read the files of %s: %w", dialect, err)
	}
	return p, nil
}
