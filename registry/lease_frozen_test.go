package registry

import (
	"context"
	"database/sql"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

// A process that is stopped while it inserts a version holds the lease's row. Another takes the lease once the server has
// ended the silent session.
func TestTakesTheLeaseOfAFrozenInsert(t *testing.T) {
	s, err := Open(openMySQL(t), MySQL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, a := t.Context(), mustLease(t, s, "a")
	conn, err := s.db.Connx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const silence = 2 * time.Second
	if _, err := conn.ExecContext(ctx, `SET SESSION wait_timeout = ?`, int(silence.Seconds())); err != nil {
		t.Fatal(err)
	}
	a.TTL = 500 * time.Millisecond
	if err := s.RenewLease(ctx, a); err != nil {
		t.Fatal(err)
	}
	tx, err := conn.BeginTxx(ctx, s.dialect.writeTx())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.holdLease(ctx, tx, a); err != nil {
		t.Fatal(err)
	}
	frozen := time.Now()
	waited := false
	for {
		call, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		b, ok, err := s.AcquireLease(call, "confgen", "b", time.Hour)
		cancel()
		if ok && err == nil {
			if b.Epoch <= a.Epoch {
				t.Errorf("b leads in epoch %d after %d", b.Epoch, a.Epoch)
			}
			break
		}
		waited = waited || err != nil
		if time.Since(frozen) > silence+5*time.Second {
			t.Fatalf("b waits for the lock of a frozen process: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("taken after %v", time.Since(frozen).Round(time.Millisecond))
	if !waited {
		t.Error("there was no lock to wait for: this test has shown nothing")
	}
	if err := tx.Commit(); err == nil {
		t.Error("the frozen transaction was committed")
	}
}

// No call about a lease, wherever in it the process is stopped, holds a lock that others wait for, on a server that bears
// silence for hours.
func TestFrozenLeaseCallsHoldNoLock(t *testing.T) {
	s, err := Open(openMySQL(t), MySQL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(*Store, Lease) error{
		"renew":   func(s *Store, l Lease) error { return s.RenewLease(context.Background(), l) },
		"raise":   func(s *Store, l Lease) error { _, err := s.RaiseEpoch(context.Background(), l, l.Epoch+5); return err },
		"release": func(s *Store, l Lease) error { return s.ReleaseLease(context.Background(), l) },
		"acquire": func(s *Store, l Lease) error {
			_, _, err := s.AcquireLease(context.Background(), l.Name, l.Holder, l.TTL)
			return err
		},
		"first": func(s *Store, l Lease) error {
			_, _, err := s.AcquireLease(context.Background(), "first "+l.Name, l.Holder, l.TTL)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for at := 1; frozenAt(t, s, at, call); at++ {
				if at > 20 {
					t.Fatal("the call never ends")
				}
			}
		})
	}
}

// frozenAt freezes a call as it is about to send its packet number at, and reports whether it had so many. Whatever the
// server holds by then would be held for good.
func frozenAt(t *testing.T, s *Store, at int, call func(*Store, Lease) error) bool {
	t.Helper()
	ctx := t.Context()
	l := mustLease(t, s, "a")
	ice := &freezer{frozen: make(chan struct{}), thaw: make(chan struct{})}
	slow, err := Open(ice.open(t, s), MySQL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ice.arm(at)
	done := make(chan error, 1)
	go func() { done <- call(slow, l) }()
	defer func() { ice.arm(0); _ = slow.db.Close() }() // its farewell is a packet too
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("not frozen: %v", err)
		}
		return false
	case <-ice.frozen:
	}
	defer func() { close(ice.thaw); <-done }()
	soon, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, err := s.db.ExecContext(soon, `UPDATE lease SET expires_at = 0`); err != nil {
		t.Errorf("frozen before packet %d: %v", at, err)
		return true
	}
	if b, ok, err := s.AcquireLease(soon, l.Name, "b", time.Hour); err != nil || !ok || b.Epoch <= l.Epoch {
		t.Errorf("frozen before packet %d: b takes %+v, %v: %v", at, b, ok, err)
	}
	expire(t, s)
	return true
}

// freezer makes connections that stop before they send a packet.
type freezer struct {
	frozen, thaw chan struct{}
	mu           sync.Mutex
	left         int // the packet before which it freezes; 0: none
}

func (f *freezer) arm(at int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = at
}

// open gives a pool of one connection to the same database, which is ready.
func (f *freezer) open(t *testing.T, s *Store) *sqlx.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(os.Getenv(envMySQL))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.db.Get(&cfg.DBName, `SELECT DATABASE()`); err != nil {
		t.Fatal(err)
	}
	cfg.InterpolateParams, cfg.Logger = true, new(mysql.NopLogger)
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, addr)
		return &cold{Conn: c, f: f}, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
	db.SetMaxOpenConns(1)
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	return db
}

type cold struct {
	net.Conn
	f *freezer
}

func (c *cold) Write(b []byte) (int, error) {
	c.f.mu.Lock()
	stop := c.f.left == 1
	c.f.left = max(0, c.f.left-1)
	c.f.mu.Unlock()
	if stop {
		close(c.f.frozen)
		<-c.f.thaw
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}
