// Package registrytest gives tests of other packages a registry with known content: a fresh database with the current
// schema, and a small fleet in it that shows every state there is.
//
// It is for tests only: it links the SQLite driver. The content is written row by row and not by beats, so that every
// figure in it is known.
package registrytest

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver

	"github.com/upstrand/upstrand/migrations"
	"github.com/upstrand/upstrand/registry"
)

// MySQLEnv names the variable with the DSN of a MySQL or MariaDB server whose user may create databases.
const MySQLEnv = "UPSTRAND_TEST_MYSQL_DSN"

// SQLite is a fresh database with the current schema, and a Store over it.
func SQLite(tb testing.TB) (*registry.Store, *sqlx.DB) {
	tb.Helper()
	db, err := sqlx.Open("sqlite", registry.SQLiteDSN(filepath.Join(tb.TempDir(), "registry.db")))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return open(tb, db, registry.SQLite), db
}

// MySQL is the same on a database of its own on the server that MySQLEnv names; without one the test is skipped.
func MySQL(tb testing.TB) (*registry.Store, *sqlx.DB) {
	tb.Helper()
	cfg, err := mysql.ParseDSN(os.Getenv(MySQLEnv))
	if err != nil {
		tb.Fatalf("%s: %v", MySQLEnv, err)
	}
	if cfg.Addr == "" || os.Getenv(MySQLEnv) == "" {
		tb.Skipf("needs a MySQL or MariaDB server: %s is not set", MySQLEnv)
	}
	name := "upstrand_read_" + strings.ToLower(rand.Text()[:12])
	admin, err := sqlx.Connect("mysql", cfg.FormatDSN())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { admin.Close() })
	if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _, _ = admin.Exec("DROP DATABASE " + name) })
	cfg.DBName = name
	db, err := sqlx.Open("mysql", cfg.FormatDSN())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return open(tb, db, registry.MySQL), db
}

// Each runs the test on every database in reach, as a subtest of its name.
func Each(t *testing.T, test func(t *testing.T, s *registry.Store, db *sqlx.DB)) {
	t.Run("sqlite", func(t *testing.T) {
		s, db := SQLite(t)
		test(t, s, db)
	})
	t.Run("mysql", func(t *testing.T) {
		s, db := MySQL(t)
		test(t, s, db)
	})
}

func open(tb testing.TB, db *sqlx.DB, d registry.Dialect) *registry.Store {
	tb.Helper()
	if _, err := migrations.Up(tb.Context(), db.DB, d.String()); err != nil {
		tb.Fatal(err)
	}
	s, err := registry.Open(db, d, registry.Options{Now: Now})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
