package mysqldb

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/rs/zerolog"
)

// server opens a pool on the server that UPSTRAND_TEST_MYSQL_DSN names.
func server(t *testing.T, patient bool) *sqlx.DB {
	t.Helper()
	dsn := os.Getenv("UPSTRAND_TEST_MYSQL_DSN")
	if dsn == "" {
		t.Skip("needs a MySQL or MariaDB server: UPSTRAND_TEST_MYSQL_DSN is not set")
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Addr: cfg.Addr, Database: cfg.DBName, User: cfg.User, MaxConns: 8, Timeout: 10 * time.Second}
	if cfg.Passwd != "" {
		o.PasswordFile = file(t, cfg.Passwd)
	}
	db, err := o.Open(zerolog.Nop(), patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestSessionsEndInSilence(t *testing.T) {
	for _, patient := range []bool{false, true} {
		var got struct{ Next, Take, Auto int }
		err := server(t, patient).Get(&got, `SELECT @@SESSION.wait_timeout AS next, @@SESSION.net_write_timeout AS take, @@SESSION.autocommit AS auto`)
		if err != nil {
			t.Fatal(err)
		}
		if limited := got.Next == 5 && got.Take == 5; limited == patient || got.Auto != 1 {
			t.Errorf("patient %v: the server waits %d s for the next statement, %d s for a reader; autocommit %d", patient, got.Next, got.Take, got.Auto)
		}
	}
}

// A session that the server has ended is replaced before a statement is sent, whatever it is.
func TestEndedSessionsAreReplaced(t *testing.T) {
	db := server(t, false)
	db.SetMaxOpenConns(1)
	number := func() (id int) {
		if err := db.Get(&id, `SELECT CONNECTION_ID()`); err != nil {
			t.Fatal(err)
		}
		return id
	}
	was := number()
	if _, err := db.Exec(`SET SESSION wait_timeout = 1`); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond)
	if open := db.Stats().OpenConnections; open != 1 {
		t.Fatalf("%d connections: the pool was quicker than the server", open)
	}
	if _, err := db.Exec(`SET @x = 1`); err != nil {
		t.Errorf("a statement after a silence: %v", err)
	}
	if number() == was {
		t.Error("the server did not end the session")
	}
}

// The pool closes idle connections itself: what the server has to close it logs as aborted.
func TestIdleConnectionsAreClosedInTime(t *testing.T) {
	db := server(t, false)
	var held []io.Closer
	for range 5 {
		c, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	since := time.Now()
	for _, c := range held {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for db.Stats().OpenConnections > 0 {
		if time.Since(since) >= silence {
			t.Fatalf("%d connections were idle for %v", db.Stats().OpenConnections, silence)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if closed := db.Stats().MaxIdleTimeClosed; closed != 5 {
		t.Errorf("%d of 5 were closed for being idle", closed)
	}
	t.Logf("closed after %v", time.Since(since).Round(time.Millisecond))
}

// A client that is frozen while it reads in a transaction loses its locks as one that sends nothing.
func TestUnreadResultsHoldNoLocks(t *testing.T) {
	db := server(t, false)
	for _, q := range []string{
		`CREATE TABLE unread (id INT PRIMARY KEY, n INT, s LONGTEXT)`,
		`INSERT INTO unread VALUES (1, 0, REPEAT('x', 12000000)), (2, 0, REPEAT('x', 12000000))`, // more than sockets hold
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = server(t, false).Exec(`DROP TABLE unread`) })
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec(`UPDATE unread SET n = 1 WHERE id = 1`); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.Query(`SELECT s FROM unread`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	since := time.Now()
	if _, err := db.Exec(`UPDATE unread SET n = 2 WHERE id = 1`); err != nil {
		t.Errorf("after %v: %v", time.Since(since), err)
	}
	t.Logf("the lock was free after %v", time.Since(since).Round(time.Millisecond))
	for rows.Next() {
	}
	if rows.Err() == nil {
		t.Error("the server bore a client that reads nothing")
	}
}
