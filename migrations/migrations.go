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
	results, err := up(ctx, p, dialect)
	if err != nil {
		return nil, fmt.Errorf("migrations: up: %w", err)
	}
	applied := make([]string, 0, len(results))
	for _, r := range results {
		applied = append(applied, r.Source.Path)
	}
	return applied, nil
}

// up runs the provider. SQLite has no lock that spans transactions, but each file is one transaction together with the
// row that says it is done, so whoever comes second fails, rolls back, looks again and finds it done.
func up(ctx context.Context, p *goose.Provider, dialect string) ([]*goose.MigrationResult, error) {
	if dialect != SQLite {
		return p.Up(ctx)
	}
	const attempts = 20
	for attempt := 1; ; attempt++ {
		results, err := p.Up(ctx)
		if err == nil || attempt == attempts {
			return results, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(time.Duration(attempt) * 10 * time.Millisecond):
		}
		if pending, perr := p.HasPending(ctx); perr == nil && pending && attempt > 2 {
			return nil, err // nobody else is doing it: the file itself fails
		}
	}
}

// Status lists every migration that this binary knows, in order.
func Status(ctx context.Context, db *sql.DB, dialect string) ([]Migration, error) {
	p, err := provider(db, dialect)
	if err != nil {
		return nil, err
	}
	all, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrations: status: %w", err)
	}
	list := make([]Migration, 0, len(all))
	for _, m := range all {
		list = append(list, Migration{Version: m.Source.Version, Name: m.Source.Path, AppliedAt: m.AppliedAt})
	}
	return list, nil
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
	var opts []goose.ProviderOption
	switch dialect {
	case MySQL:
		gd = goose.DialectMySQL
		opts = append(opts, goose.WithSessionLocker(namedLock{wait: lockWait}))
	case SQLite:
		gd = goose.DialectSQLite3
	default:
		return nil, fmt.Errorf("migrations: unknown dialect %q, want %q or %q", dialect, MySQL, SQLite)
	}
	sub, err := fs.Sub(files, dialect)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	p, err := goose.NewProvider(gd, db, sub, append(opts, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return nil, fmt.Errorf("migrations: read the files of %s: %w", dialect, err)
	}
	return p, nil
}
