package rig

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/segmentio/kafka-go"
)

// needReal skips where the real servers are not meant to be there. `make test-real` sets the variable.
func needReal(t *testing.T) {
	t.Helper()
	if os.Getenv("UPSTRAND_REAL") == "" {
		t.Skip("needs UPSTRAND_REAL=1, Java with the Kafka jars, and mariadb-server: make test-real")
	}
}

// serverDir is a folder that the user mysql can reach, which t.TempDir's are not everywhere.
func serverDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rig")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRealKafkaKeepsItsLogOverStopKillAndPause(t *testing.T) {
	needReal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	k, err := StartKafka(ctx, serverDir(t), KafkaOptions{Login: &Login{"u", "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	e := Endpoint{Addr: k.Addr()}
	c, done := e.client()
	defer done()
	resp, err := c.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: "t", NumPartitions: 2, ReplicationFactor: 1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "max.message.bytes", ConfigValue: "2000000"}}}}})
	if err != nil || resp.Errors["t"] != nil {
		t.Fatal(err, resp)
	}
	if err := e.Produce(ctx, "t", kafka.Message{Key: []byte("a"), Value: []byte("1")}, kafka.Message{Key: []byte("b"), Value: []byte("2")}); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []struct {
		name string
		do   func() error
	}{
		{"stop", func() error { return k.Stop(ctx) }},
		{"kill", k.Kill},
	} {
		if err := fault.do(); err != nil {
			t.Fatalf("%s: %v", fault.name, err)
		}
		if err := reachable(k.Addr()); err == nil {
			t.Errorf("after %s the broker still accepts connections", fault.name)
		}
		began := time.Now()
		if err := k.Start(ctx); err != nil {
			t.Fatal(err)
		}
		t.Logf("up again %v after %s", time.Since(began).Round(time.Millisecond), fault.name)
		if n, err := e.LogEnd(ctx, "t"); err != nil || n != 2 {
			t.Errorf("after %s the log holds %d records (%v), want 2", fault.name, n, err)
		}
	}
	if err := e.Recreate(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	entries, partitions, err := e.TopicConfigs(ctx, "t")
	if err != nil || partitions != 2 || len(entries) != 1 || entries[0].ConfigValue != "2000000" {
		t.Errorf("recreated topic has %d partitions and %v (%v), want 2 and the one setting", partitions, entries, err)
	}
	if n, err := e.LogEnd(ctx, "t"); err != nil || n != 0 {
		t.Errorf("recreated topic holds %d records (%v), want none", n, err)
	}
}

func TestRealMariaDBKeepsItsDataAndTakesAnOlderCopyBack(t *testing.T) {
	needReal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	m, err := StartMariaDB(ctx, serverDir(t), MariaDBOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	count := func() (n int) {
		db, err := sql.Open("mysql", m.DSN())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM t").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	exec := func(q string) {
		db, err := sql.Open("mysql", m.DSN())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE t (a INT)")
	exec("INSERT INTO t VALUES (1)")
	backup, err := m.Backup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	exec("INSERT INTO t VALUES (2)")
	if err := m.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := reachable(m.Addr()); err == nil {
		t.Error("a killed server still accepts connections")
	}
	if err := m.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 2 {
		t.Errorf("after kill and start there are %d rows, want 2", n)
	}
	if err := m.Restore(ctx, backup); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 1 {
		t.Errorf("after the restore there are %d rows, want 1", n)
	}
}

// The lock is one between processes, so the file's user is another process: this test again, told so by a variable.
func TestSQLiteStopPauseAndRestore(t *testing.T) {
	if file := os.Getenv("RIG_SQLITE_FILE"); file != "" {
		useSQLite(t, file)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	file := filepath.Join(dir, "r.db")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	user := &Proc{Name: "user", Path: self, Args: []string{"-test.run=^" + t.Name() + "$", "-test.v"}, Env: []string{"RIG_SQLITE_FILE=" + file},
		Log: filepath.Join(dir, "user.log")}
	if err := user.Start(); err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	await := func(what string) {
		t.Helper()
		before := bytes.Count(user.Output(), []byte(what))
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := user.Await(ctx, what, func() error {
			if bytes.Count(user.Output(), []byte(what)) <= before {
				return errors.New("not yet")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	db := NewSQLite(file)
	defer db.Close()
	await("wrote")
	backup, err := db.Backup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	await("write failed")
	if err := db.Start(ctx); err != nil {
		t.Fatal(err)
	}
	await("wrote")
	if err := db.Pause(); err != nil {
		t.Fatal(err)
	}
	before := len(user.Output())
	time.Sleep(500 * time.Millisecond) // nothing may happen in it, so there is nothing to wait for
	// One report can have been on its way.
	if got := user.Output()[before:]; bytes.Count(got, []byte("\n")) > 1 {
		t.Errorf("with the file paused its user went on: %s", got)
	}
	if err := db.Resume(); err != nil {
		t.Fatal(err)
	}
	await("wrote")
	await("read ok")
	if err := db.Restore(ctx, backup); err != nil {
		t.Fatal(err)
	}
	await("fewer rows than before")
	await("wrote")
}

// useSQLite writes and reads a file for ever and says what comes of it.
func useSQLite(t *testing.T, file string) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(200)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT)"); err != nil {
		t.Fatal(err)
	}
	report := func(err error, good, bad string) {
		if err != nil {
			fmt.Println(bad, err)
		} else {
			fmt.Println(good)
		}
	}
	for before, n := 0, 0; ; before = n {
		_, err := db.Exec("INSERT INTO t DEFAULT VALUES")
		report(err, "wrote", "write failed")
		err = db.QueryRow("SELECT COUNT(*) FROM t").Scan(&n)
		report(err, "read ok", "read failed")
		if n < before {
			fmt.Println("fewer rows than before")
		}
	}
}

func TestBackendKillResetsConnections(t *testing.T) {
	b, err := NewBackend("s/1", "")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + b.Addr + "/x")
	if err != nil || resp.Header.Get(HeaderInstance) != "s/1" {
		t.Fatal(err, resp)
	}
	resp.Body.Close()
	b.Delay.Store(int64(time.Hour))
	failed := make(chan error)
	go func() {
		_, err := http.Get("http://" + b.Addr + "/slow")
		failed <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := Until(ctx, func() error {
		if b.Served() < 2 {
			return context.DeadlineExceeded
		}
		return nil
	}); err != nil {
		t.Fatal("the slow request never came")
	}
	b.Kill()
	if err := <-failed; err == nil {
		t.Error("the request under way was answered by a killed backend")
	}
	if err := reachable(b.Addr); err == nil {
		t.Error("a killed backend still accepts connections")
	}
}
