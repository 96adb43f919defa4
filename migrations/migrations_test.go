package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite"
)

const envMySQL = "UPSTRAND_TEST_MYSQL_DSN"

// onEach runs a test against an empty database of each kind; open gives further pools to the same one.
func onEach(t *testing.T, test func(t *testing.T, dialect string, open func() *sql.DB)) {
	t.Run(SQLite, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "x.db")
		test(t, SQLite, func() *sql.DB {
			return pool(t, "sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_txlock=immediate")
		})
	})
	t.Run(MySQL, func(t *testing.T) {
		dsn := os.Getenv(envMySQL)
		if dsn == "" {
			t.Skipf("skipped: needs a MySQL or MariaDB server, set %s=user:password@tcp(host:port)/", envMySQL)
		}
		cfg, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		cfg.DBName = ""
		admin := pool(t, "mysql", cfg.FormatDSN())
		name := fmt.Sprintf("upstrand_migrate_%d", time.Now().UnixNano())
		if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = admin.Exec("DROP DATABASE " + name) })
		cfg.DBName = name
		test(t, MySQL, func() *sql.DB { return pool(t, "mysql", cfg.FormatDSN()) })
	})
}

func pool(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestUp(t *testing.T) {
	onEach(t, func(t *testing.T, dialect string, open func() *sql.DB) {
		ctx, db := context.Background(), open()
		if err := Check(ctx, db, dialect); !errors.Is(err, ErrPending) {
			t.Errorf("an empty database: %v", err)
		}
		applied, err := Up(ctx, db, dialect)
		if err != nil || len(applied) == 0 {
			t.Fatalf("applied %v: %v", applied, err)
		}
		if err := Check(ctx, db, dialect); err != nil {
			t.Errorf("after up: %v", err)
		}
		if again, err := Up(ctx, db, dialect); err != nil || len(again) != 0 {
			t.Errorf("again: %v, %v", again, err)
		}
		list, err := Status(ctx, db, dialect)
		if err != nil || len(list) != len(applied) || time.Since(list[0].AppliedAt).Abs() > time.Hour || list[0].Version != 1 {
			t.Errorf("status %+v: %v", list, err)
		}
		if _, err := db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999999, 1)`); err != nil {
			t.Fatal(err)
		}
		if err := Check(ctx, db, dialect); !errors.Is(err, ErrNewer) {
			t.Errorf("a schema of a newer binary: %v", err)
		}
	})
}

// Processes that start together: one applies each file, all succeed.
func TestUpAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, dialect string, open func() *sql.DB) {
		var mu sync.Mutex
		total := 0
		var wg sync.WaitGroup
		for range 5 {
			db := open()
			wg.Go(func() {
				applied, err := Up(context.Background(), db, dialect)
				if err != nil {
					t.Errorf("up: %v", err)
				}
				mu.Lock()
				total += len(applied)
				mu.Unlock()
			})
		}
		wg.Wait()
		if want := len(names(t, dialect)); total != want {
			t.Errorf("%d files were applied by all together, want %d", total, want)
		}
	})
}

// MySQL commits each statement at once, so a crash leaves a file half done and unmarked. It must run again.
func TestUpAfterACrash(t *testing.T) {
	onEach(t, func(t *testing.T, dialect string, open func() *sql.DB) {
		if dialect == SQLite {
			t.Skip("skipped: a file is one transaction in SQLite, nothing is ever half done")
		}
		ctx, db := context.Background(), open()
		if _, err := Up(ctx, db, dialect); err != nil {
			t.Fatal(err)
		}
		for _, q := range []string{`DELETE FROM goose_db_version WHERE version_id > 0`, `DROP TABLE lease`} {
			if _, err := db.Exec(q); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Up(ctx, db, dialect); err != nil {
			t.Fatalf("second run: %v", err)
		}
		var n int
		if err := db.QueryRow(`SELECT COUNT(*) FROM revision`).Scan(&n); err != nil || n != 3 {
			t.Errorf("%d counters: %v", n, err)
		}
		if err := db.QueryRow(`SELECT COUNT(*) FROM lease`).Scan(&n); err != nil {
			t.Error(err)
		}
	})
}

func TestBothDialectsHaveTheSameFilesAndColumns(t *testing.T) {
	if a, b := names(t, MySQL), names(t, SQLite); !slices.Equal(a, b) {
		t.Fatalf("mysql has %v, sqlite %v", a, b)
	}
	found := 0
	for _, name := range names(t, MySQL) {
		a, b := columns(t, MySQL+"/"+name), columns(t, SQLite+"/"+name)
		if !slices.Equal(a, b) {
			t.Errorf("%s differs:\nmysql  %v\nsqlite %v", name, a, b)
		}
		found += len(a)
	}
	if found < 50 {
		t.Fatalf("only %d columns found", found)
	}
}

func TestUnknownDialect(t *testing.T) {
	if _, err := Up(context.Background(), nil, "oracle"); err == nil || !strings.Contains(err.Error(), `"oracle"`) {
		t.Errorf("got %v", err)
	}
}

func names(t *testing.T, dialect string) []string {
	t.Helper()
	entries, err := fs.ReadDir(files, dialect)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// columns are the tables and columns that a file creates: "table.column", in order.
func columns(t *testing.T, file string) []string {
	t.Helper()
	text, err := fs.ReadFile(files, file)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	table := ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "CREATE TABLE"):
			table = words[len(words)-2]
		case strings.HasPrefix(line, ")"):
			table = ""
		case table != "" && len(words) > 1 && words[0] == strings.ToLower(words[0]):
			list = append(list, table+"."+words[0])
		}
	}
	return list
}
