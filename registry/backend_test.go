package registry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/upstrand/upstrand/migrations"
)

// envMySQL names the variable with the DSN of a MySQL or MariaDB server whose user may create databases.
const envMySQL = "UPSTRAND_TEST_MYSQL_DSN"

// backends are the databases that the contract holds for.
var backends = []struct {
	name    string
	dialect Dialect
	open    func(testing.TB) *sqlx.DB
}{
	{"sqlite", SQLite, openSQLite},
	{"mysql", MySQL, openMySQL},
}

// onEach runs a test against a fresh, migrated database of each kind.
func onEach(t *testing.T, opt Options, test func(*testing.T, *Store)) {
	t.Helper()
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			s, err := Open(b.open(t), b.dialect, opt)
			if err != nil {
				t.Fatal(err)
			}
			test(t, s)
		})
	}
}

func openSQLite(t testing.TB) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", SQLiteDSN(filepath.Join(t.TempDir(), "registry file.db")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	migrate(t, db, migrations.SQLite)
	return db
}

func openMySQL(t testing.TB) *sqlx.DB {
	t.Helper()
	dsn := os.Getenv(envMySQL)
	if dsn == "" {
		t.Skipf("skipped: needs a MySQL or MariaDB server, set %s=user:password@tcp(host:port)/", envMySQL)
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DBName, cfg.InterpolateParams = "", true
	admin, err := sqlx.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	name := "upstrand_test_" + random(6)
	if _, err := admin.Exec("CREATE DATABASE " + name + " CHARACTER SET latin1"); err != nil { // a poor default on purpose
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = admin.Exec("DROP DATABASE " + name) })
	cfg.DBName = name
	db, err := sqlx.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	migrate(t, db, migrations.MySQL)
	return db
}

func migrate(t testing.TB, db *sqlx.DB, dialect string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := migrations.Up(ctx, db.DB, dialect); err != nil {
		t.Fatal(err)
	}
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
