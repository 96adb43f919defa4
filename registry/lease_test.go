package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustLease(t *testing.T, s *Store, holder string) Lease {
	t.Helper()
	l, ok, err := s.AcquireLease(context.Background(), "confgen", holder, time.Hour)
	if err != nil || !ok {
		t.Fatalf("%s gets no lease: %v", holder, err)
	}
	return l
}

// expire ends a lease as its time would.
func expire(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.db.Exec(`UPDATE lease SET expires_at = ` + s.dialect.nowMicros() + ` - 1`); err != nil {
		t.Fatal(err)
	}
}

func TestLease(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		ctx := context.Background()
		a := mustLease(t, s, "a")
		if a.Epoch != 1 || a.TTL != time.Hour {
			t.Errorf("first lease %+v", a)
		}
		if _, ok, err := s.AcquireLease(ctx, "confgen", "b", time.Hour); ok || err != nil {
			t.Errorf("b got a lease that a holds: %v", err)
		}
		if err := s.RenewLease(ctx, a); err != nil {
			t.Errorf("renew: %v", err)
		}
		expire(t, s)
		if err := s.RenewLease(ctx, a); !errors.Is(err, ErrFenced) {
			t.Errorf("an expired lease was renewed: %v", err)
		}
		for _, atLeast := range []int64{7, 0} {
			if _, err := s.RaiseEpoch(ctx, a, atLeast); !errors.Is(err, ErrFenced) {
				t.Errorf("the epoch of an expired lease was raised to %d: %v", atLeast, err)
			}
		}
		b := mustLease(t, s, "b")
		if b.Epoch != 2 {
			t.Errorf("epoch %d after a takeover, want 2", b.Epoch)
		}
		b, err := s.RaiseEpoch(ctx, b, 40)
		if err != nil || b.Epoch != 40 {
			t.Errorf("raised to %+v: %v", b, err)
		}
		if b, err = s.RaiseEpoch(ctx, b, 7); err != nil || b.Epoch != 40 {
			t.Errorf("an epoch went back to %+v: %v", b, err)
		}
		// The old holder can do nothing under its lease.
		if _, err := s.RaiseEpoch(ctx, a, 99); !errors.Is(err, ErrFenced) {
			t.Errorf("a raised the epoch: %v", err)
		}
		if err := s.ReleaseLease(ctx, a); err != nil {
			t.Errorf("release of what is held no more: %v", err)
		}
		if err := s.RenewLease(ctx, b); err != nil {
			t.Errorf("a's release took b's lease: %v", err)
		}
		if err := s.ReleaseLease(ctx, b); err != nil {
			t.Fatal(err)
		}
		if c := mustLease(t, s, "c"); c.Epoch != 41 {
			t.Errorf("epoch %d after a release, want 41", c.Epoch)
		}
	})
}

// The database's clock runs, and a ttl is what it says.
func TestLeaseExpiresInDatabaseTime(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		ctx := context.Background()
		if _, ok, err := s.AcquireLease(ctx, "confgen", "a", 50*time.Millisecond); !ok || err != nil {
			t.Fatal(ok, err)
		}
		var left int64
		if err := s.db.Get(&left, `SELECT expires_at - `+s.dialect.nowMicros()+` FROM lease`); err != nil || left > 50_000 {
			t.Errorf("%d µs left of 50 ms: %v", left, err)
		}
		var off int64
		if err := s.db.Get(&off, `SELECT `+s.dialect.nowMicros()+` - ?`, time.Now().UnixMicro()); err != nil || off < -5e6 || off > 5e6 {
			t.Errorf("the database's clock is off by %d µs: %v", off, err)
		}
		for deadline := time.Now().Add(10 * time.Second); ; {
			_, ok, err := s.AcquireLease(ctx, "confgen", "b", time.Hour)
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("b never got it: %v", err)
			}
			if ok {
				return
			}
		}
	})
}

func TestOneOfManyGetsTheLease(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		var mu sync.Mutex
		winners := 0
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				_, ok, err := s.AcquireLease(context.Background(), "confgen", fmt.Sprint(i), time.Hour)
				if err != nil {
					t.Error(err)
				}
				if ok {
					mu.Lock()
					winners++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if winners != 1 {
			t.Errorf("%d holders", winners)
		}
	})
}

func put(key, value string) TopologyRecord { return TopologyRecord{Key: key, Value: []byte(value)} }

func contents(t *testing.T, s *Store) string {
	t.Helper()
	list, err := s.LatestRecords(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, r := range list {
		out += r.Key + "=" + string(r.Value) + " "
	}
	return out
}

func TestVersions(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		ctx := context.Background()
		if _, err := s.LatestVersion(ctx); !errors.Is(err, ErrNotFound) {
			t.Errorf("latest of none: %v", err)
		}
		l := mustLease(t, s, "a")
		add := func(version int64, records ...TopologyRecord) error {
			return s.InsertVersion(ctx, l, Version{Version: version, Digest: "d", Cause: "c", Records: 1, Changed: 2, Revision: 3}, records)
		}
		steps := []struct {
			version int64
			records []TopologyRecord
			want    string
		}{
			{1, []TopologyRecord{put("a", "1"), put("b", "1"), put("c", "1")}, "a=1 b=1 c=1 "},
			{2, []TopologyRecord{put("a", "2"), {Key: "b"}}, "a=2 c=1 "},
			{3, []TopologyRecord{put("a", "3"), {Key: "c"}}, "a=3 "},
			{5, []TopologyRecord{put("b", "5"), put("e", "")}, "a=3 b=5 e= "},
		}
		for _, st := range steps {
			if err := add(st.version, st.records...); err != nil {
				t.Fatal(err)
			}
			if got := contents(t, s); got != st.want {
				t.Errorf("version %d holds %q, want %q", st.version, got, st.want)
			}
		}
		for _, old := range []int64{5, 4} {
			if err := add(old, put("z", "z")); !errors.Is(err, ErrOldVersion) {
				t.Errorf("version %d after 5: %v", old, err)
			}
		}
		latest, err := s.LatestVersion(ctx)
		want := Version{Version: 5, Epoch: 1, Digest: "d", Records: 1, Changed: 2, Cause: "c", Revision: 3, CreatedAt: latest.CreatedAt}
		if err != nil || latest != want {
			t.Errorf("latest %+v, want %+v: %v", latest, want, err)
		}
		testTrim(t, s)
		testFencedVersions(t, s, l)
	})
}

func testTrim(t *testing.T, s *Store) {
	t.Helper()
	n, err := s.TrimVersions(context.Background(), 2)
	if err != nil || n != 2 {
		t.Errorf("trimmed %d, want 2: %v", n, err)
	}
	if got, want := contents(t, s), "a=3 b=5 e= "; got != want {
		t.Errorf("after the trim: %q, want %q", got, want)
	}
	var rows []string
	if err := s.db.Select(&rows, `SELECT CONCAT(record_key, version) FROM topology_record ORDER BY record_key, version`); err != nil {
		t.Fatal(err)
	}
	// b's tombstone of version 2 hid version 1, c's of 3 too: all of them are gone.
	if diff := cmp.Diff([]string{"a3", "b5", "e5"}, rows); diff != "" {
		t.Error(diff)
	}
	if n, err := s.TrimVersions(context.Background(), 2); err != nil || n != 0 {
		t.Errorf("trimmed %d again: %v", n, err)
	}
}

// A leader that was stopped and woken after another took over inserts nothing. It fails when the lease is not looked at.
func testFencedVersions(t *testing.T, s *Store, l Lease) {
	t.Helper()
	ctx := context.Background()
	expire(t, s)
	before := contents(t, s)
	if err := s.InsertVersion(ctx, l, Version{Version: 6}, []TopologyRecord{put("x", "6")}); !errors.Is(err, ErrFenced) {
		t.Errorf("a version under an expired lease: %v", err)
	}
	other := mustLease(t, s, "b")
	if err := s.InsertVersion(ctx, l, Version{Version: 6}, []TopologyRecord{put("x", "6")}); !errors.Is(err, ErrFenced) {
		t.Errorf("a version under another's lease: %v", err)
	}
	if got := contents(t, s); got != before {
		t.Errorf("the old leader changed %q into %q", before, got)
	}
	if err := s.InsertVersion(ctx, other, Version{Version: 6}, []TopologyRecord{put("x", "6")}); err != nil {
		t.Error(err)
	}
}

// Values may be large and binary, and there may be many.
func TestLargeVersions(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		ctx, l := context.Background(), mustLease(t, s, "a")
		var records []TopologyRecord
		for i := range 1500 {
			records = append(records, put(fmt.Sprintf("upstream/%04d", i), fmt.Sprintf(`{"n":%d,"s":"ä'\\\u0000%c"}`, i, 0)))
		}
		big := bytes.Repeat([]byte{0, 255, '\'', '\\'}, 600_000)
		records = append(records, TopologyRecord{Key: "service/big", Value: big})
		if err := s.InsertVersion(ctx, l, Version{Version: 1}, records); err != nil {
			t.Fatal(err)
		}
		got, err := s.LatestRecords(ctx)
		if err != nil || len(got) != len(records) {
			t.Fatalf("%d records, want %d: %v", len(got), len(records), err)
		}
		if got[0].Key != "service/big" || !bytes.Equal(got[0].Value, big) || string(got[7].Value) != string(records[6].Value) {
			t.Error("a value came back changed")
		}
	})
}
