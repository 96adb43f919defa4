package rig

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the restore of an older copy goes through SQL
)

// Embedded is the broker of upstrand-dev as a process of its own, kept on disk.
type Embedded struct {
	*Proc
	addr string
}

// StartEmbedded starts `upstrand-dev broker` with its data in dir.
func StartEmbedded(ctx context.Context, upstrandDev, dir string) (*Embedded, error) {
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	e := &Embedded{addr: addr, Proc: &Proc{
		Name: "broker", Path: upstrandDev, Log: filepath.Join(dir, "broker.log"),
		Args: []string{"broker", "--listen", addr, "--data", filepath.Join(dir, "broker"), "--log-format", "json"},
	}}
	return e, e.Start(ctx)
}

// Addr is where clients connect.
func (e *Embedded) Addr() string { return e.addr }

// Start starts a stopped broker on its port and data and waits until it answers.
func (e *Embedded) Start(ctx context.Context) error {
	if err := e.Proc.Start(); err != nil {
		return err
	}
	return e.Await(ctx, "the broker", func() error { return brokerAnswers(ctx, e.addr) })
}

// Stop ends the broker as an operator would.
func (e *Embedded) Stop(context.Context) error { return e.Term(10 * time.Second) }

// SQLite is a database file. It has no server that could be stopped: being away is a lock held by us.
type SQLite struct {
	file string

	mu     sync.Mutex
	locked *os.File // -shm with locks held while the database is away
}

// NewSQLite is the database of a file that `migrate` has yet to make.
func NewSQLite(file string) *SQLite { return &SQLite{file: file} }

// Flags makes a role of upstrand-dev use this database.
func (s *SQLite) Flags(string) []string { return []string{"--sqlite", s.file} }

// File is the database file.
func (s *SQLite) File() string { return s.file }

// The lock bytes of the WAL index file (https://www.sqlite.org/walformat.html, section 2.3): writer, checkpoint, recovery
// and five reader locks.
const (
	walLocksStart = 120
	walWriterLock = 1
	walAllLocks   = 8
)

// Stop makes every write fail until Start, after the user's busy timeout; reads still work.
func (s *SQLite) Stop(ctx context.Context) error { return s.lock(ctx, walWriterLock) }

// Kill is Stop: a file can't end in any other way.
func (s *SQLite) Kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.Stop(ctx)
}

// Start ends a Stop.
func (s *SQLite) Start(context.Context) error { return s.unlock() }

// Pause makes every read and write hang until Resume. SQLite itself gives up on a read after some 10 s.
func (s *SQLite) Pause() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.lock(ctx, walAllLocks)
}

// Resume ends a Pause.
func (s *SQLite) Resume() error { return s.unlock() }

// lock takes the first n lock bytes. They are POSIX locks, so nothing else in this process may have the file open meanwhile.
func (s *SQLite) lock(ctx context.Context, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked != nil {
		return errors.New("rig: the SQLite file is locked already")
	}
	f, err := os.OpenFile(s.file+"-shm", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("rig: lock the SQLite file (is no role using it?): %w", err)
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: walLocksStart, Len: n}
	tick := time.NewTicker(200 * time.Microsecond) // users come and go; between two of them is room
	defer tick.Stop()
	for {
		if err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock); err == nil {
			s.locked = f
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("rig: lock the SQLite file: %w", errors.Join(err, ctx.Err(), f.Close()))
		case <-tick.C:
		}
	}
}

func (s *SQLite) unlock() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked == nil {
		return errors.New("rig: the SQLite file is not locked")
	}
	err := s.locked.Close()
	s.locked = nil
	return err
}

// Close gives up a lock that is still held.
func (s *SQLite) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked != nil {
		_ = s.locked.Close()
		s.locked = nil
	}
}

// Backup writes a consistent copy to a new file and returns its name.
func (s *SQLite) Backup(ctx context.Context) (string, error) {
	backup := fmt.Sprintf("%s.backup-%d", s.file, time.Now().UnixNano())
	err := s.with(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "VACUUM INTO ?", backup)
		return err
	})
	return backup, err
}

// Restore puts a Backup's rows back in place of all present ones, in one transaction: the roles have the file open, so it can't be
// swapped for another.
func (s *SQLite) Restore(ctx context.Context, backup string) error {
	return s.with(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, "ATTACH DATABASE ? AS old", backup); err != nil {
			return err
		}
		var tables []string
		rows, err := c.QueryContext(ctx, "SELECT name FROM old.sqlite_master WHERE type = 'table' AND (name NOT LIKE 'sqlite_%' OR name = 'sqlite_sequence')")
		if err != nil {
			return err
		}
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return errors.Join(err, rows.Close())
			}
			tables = append(tables, name)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		var b strings.Builder
		b.WriteString("BEGIN IMMEDIATE;\n")
		for _, t := range tables {
			fmt.Fprintf(&b, "DELETE FROM main.%q;\nINSERT INTO main.%q SELECT * FROM old.%q;\n", t, t, t)
		}
		b.WriteString("COMMIT;\n")
		_, err = c.ExecContext(ctx, b.String())
		return err
	})
}

func (s *SQLite) with(ctx context.Context, do func(*sql.Conn) error) error {
	dsn := "file:" + (&url.URL{Path: s.file}).EscapedPath() + "?_pragma=busy_timeout(10000)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return fmt.Errorf("rig: open the SQLite file: %w", err)
	}
	defer db.Close()
	c, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("rig: open the SQLite file: %w", err)
	}
	defer c.Close()
	if err := do(c); err != nil {
		return fmt.Errorf("rig: SQLite file: %w", err)
	}
	return nil
}
