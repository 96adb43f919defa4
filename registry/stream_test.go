package registry

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

// sighted is a beat of service/id.
func sighted(service, id string, seq int64, addr int) *Sighting {
	return &Sighting{
		Service: service, ID: id, Incarnation: 1, Seq: seq, ReceivedAt: 1, Status: StatusUp,
		Attrs:    Attrs{Scheme: "http", IP: fmt.Sprintf("10.0.%d.%d", addr>>8, addr&255), Port: 80, Weight: 1},
		Interval: 10 * time.Second, StaleAfter: 30 * time.Second,
	}
}

// batchOf is a caught-up batch of the given beats.
func batchOf(st *Stream, sightings ...*Sighting) Batch {
	from := st.State().NextOffset
	b := Batch{From: from, Next: from + int64(len(sightings)), CaughtUp: true}
	b.LogEnd = b.Next
	for i, s := range sightings {
		b.Records = append(b.Records, Record{Offset: from + int64(i), Sighting: s})
	}
	return b
}

// pulsed is a batch of n pulses that follow the number first.
func pulsed(st *Stream, first, n int64) Batch {
	from := st.State().NextOffset
	b := Batch{From: from, Next: from + n, LogEnd: from + n, CaughtUp: true}
	for i := range n {
		b.Records = append(b.Records, Record{Offset: from + i, Pulse: &Pulse{Session: "s", N: first + i, Elapsed: time.Second}})
	}
	return b
}

func started(t testing.TB, s *Store, part int32) *Stream {
	t.Helper()
	st, err := s.OpenStream(context.Background(), part, fmt.Sprintf("owner of %d", part))
	if err != nil {
		t.Fatal(err)
	}
	if st.State().NextOffset < 0 {
		if err := st.Restart(context.Background(), 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

func mustApply(t testing.TB, st *Stream, b Batch) Result {
	t.Helper()
	res, err := st.Apply(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// dump is everything that a fenced owner must not have changed.
func dump(t *testing.T, s *Store) string {
	t.Helper()
	out := ""
	for _, q := range []string{
		`SELECT CONCAT(part, ' ', next_offset, ' ', clock, ' ', owner, ' ', updated_at) FROM stream ORDER BY part`,
		`SELECT CONCAT(id, ' ', n) FROM revision ORDER BY id`,
		`SELECT CONCAT(id, ' ', iid, ' ', liveness, ' ', weight, ' ', revision) FROM instance ORDER BY id`,
		`SELECT CONCAT(id, ' ', part, ' ', clock, ' ', seq) FROM hot ORDER BY id`,
		`SELECT CONCAT(addr, ' ', instance) FROM address ORDER BY addr`,
		`SELECT CONCAT(seq, ' ', kind) FROM event ORDER BY seq`,
		`SELECT CONCAT(part, ' ', log_offset) FROM rejected ORDER BY part, log_offset`,
		`SELECT CONCAT(part, ' ', reason, ' ', n) FROM rejected_count ORDER BY part, reason`,
	} {
		var lines []string
		if err := s.db.Select(&lines, q); err != nil {
			t.Fatal(err)
		}
		out += fmt.Sprintln(lines)
	}
	return out
}

// An owner that was stopped and woken after another took over changes nothing, with anything that it can do.
func TestFencedStreamChangesNothing(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		ctx := context.Background()
		for name, act := range map[string]func(*Stream, Batch) error{
			"beats": func(st *Stream, b Batch) error { _, err := st.Apply(ctx, b); return err },
			"joins": func(st *Stream, b Batch) error {
				b.Records[0].Sighting = sighted("orders", "new", 1, 9)
				_, err := st.Apply(ctx, b)
				return err
			},
			"rejected": func(st *Stream, b Batch) error {
				b.Records, b.Rejected = nil, []Rejected{{Offset: b.From, Reason: "x"}}
				_, err := st.Apply(ctx, b)
				return err
			},
			"judging": func(st *Stream, _ Batch) error { _, err := st.Apply(ctx, pulsed(st, 2, 40)); return err },
			"nothing": func(st *Stream, b Batch) error {
				b.Records, b.Next = nil, b.From
				_, err := st.Apply(ctx, b)
				return err
			},
			"restart": func(st *Stream, _ Batch) error { return st.Restart(ctx, 7, "mine") },
			"adopt":   func(st *Stream, _ Batch) error { return st.Adopt(ctx, 1) },
		} {
			t.Run(name, func(t *testing.T) {
				first := started(t, s, 0)
				mustApply(t, first, batchOf(first, sighted("orders", "a", first.State().NextOffset+1, 1)))
				mustApply(t, first, pulsed(first, 1, 1))
				second := started(t, s, 0)
				mustApply(t, second, batchOf(second, sighted("orders", "a", second.State().NextOffset+1, 1)))
				before := dump(t, s)
				for range 2 { // a fenced Stream stays fenced
					err := act(first, batchOf(first, sighted("orders", "a", first.State().NextOffset+100, 1)))
					if !errors.Is(err, ErrFenced) {
						t.Errorf("the first owner got %v, want ErrFenced", err)
					}
				}
				if after := dump(t, s); after != before {
					t.Errorf("the first owner changed\n%s\ninto\n%s", before, after)
				}
				mustApply(t, second, batchOf(second, sighted("orders", "a", second.State().NextOffset+1, 1)))
			})
		}
	})
}

// Random logs over two partitions: at the end the registry agrees with its own invariants, and a stream that is opened
// anew knows what the old one knew.
func TestRandomLogs(t *testing.T) {
	onEach(t, Options{UnprovenLimit: 20 * time.Second}, func(t *testing.T, s *Store) {
		rnd := rand.New(rand.NewPCG(42, 1))
		sts := []*Stream{started(t, s, 0), started(t, s, 1)}
		pulses := []int64{0, 0}
		seq := int64(0)
		for range 120 {
			p := rnd.IntN(2)
			st := sts[p]
			b := batchOf(st)
			for range 1 + rnd.IntN(12) {
				seq++
				x := sighted([]string{"a", "b", "upstrand-proxy"}[rnd.IntN(3)], fmt.Sprint(rnd.IntN(6)), seq, rnd.IntN(8))
				x.Incarnation = int64(rnd.IntN(3))
				x.Interval, x.StaleAfter = time.Second, 3*time.Second
				x.Attrs.URL = []string{"", "/x", "/y/"}[rnd.IntN(3)]
				switch rnd.IntN(8) {
				case 0:
					x.Status = StatusLeaving
				case 1:
					x.Seq -= rnd.Int64N(20)
				}
				b.Records = append(b.Records, Record{Offset: b.Next, Sighting: x})
				b.Next++
			}
			for range rnd.IntN(4) {
				pulses[p]++
				b.Records = append(b.Records, Record{Offset: b.Next, Pulse: &Pulse{Session: "s", N: pulses[p], Elapsed: time.Second}})
				b.Next++
			}
			b.LogEnd = b.Next
			for i := range b.Records {
				if x := b.Records[i].Sighting; x != nil && x.Seq < 0 {
					x.Seq = 0
				}
			}
			mustApply(t, st, b)
			if rnd.IntN(10) == 0 {
				sts[p] = started(t, s, int32(p))
			}
			checkOwners(t, s)
			checkIndex(t, s, st)
		}
		checkServices(t, s)
	})
}

// checkIndex compares a stream's memory, after it has seen what others did, with what a new owner would read.
func checkIndex(t *testing.T, s *Store, st *Stream) {
	t.Helper()
	mustSync(t, s, st)
	fresh := started(t, s, st.part)
	for id, want := range fresh.index.ids {
		got := st.index.ids[id]
		if got == nil {
			t.Fatalf("the index lacks %s", want.name())
		}
		if got.Liveness != want.Liveness || got.seq != want.seq || got.clock != want.clock || got.Incarnation != want.Incarnation ||
			!sameAttrs(&got.Attrs, &want.Attrs) || got.unprovenClock != want.unprovenClock {
			t.Fatalf("the index holds %+v, the database %+v", got, want)
		}
		if got.Liveness == Live && due(got) < st.index.earliest {
			t.Fatalf("%s is due at %d, the index looks from %d on", got.name(), due(got), st.index.earliest)
		}
	}
	if len(st.index.unproven) != len(fresh.index.unproven) {
		t.Fatalf("%d unproven in memory, %d in the database", len(st.index.unproven), len(fresh.index.unproven))
	}
}

func mustSync(t *testing.T, s *Store, st *Stream) {
	t.Helper()
	// With nothing in it a batch only reads what others changed.
	from := st.State().NextOffset
	mustApply(t, st, Batch{From: from, Next: from, LogEnd: from})
}

func checkServices(t *testing.T, s *Store) {
	t.Helper()
	var wrong []string
	err := s.db.Select(&wrong, `SELECT s.name FROM service s WHERE (s.emptied_at = 0) <>
		(EXISTS (SELECT 1 FROM instance i WHERE i.service = s.name AND i.liveness IN ('live', 'unproven')))`)
	if err != nil || len(wrong) > 0 {
		t.Errorf("services that are marked wrongly: %v, %v", wrong, err)
	}
}

func TestUnknownCommitMeansReload(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		st := started(t, s, 0)
		ctx, cancel := context.WithCancel(context.Background())
		err := st.change(ctx, func(*sqlx.Tx) error { cancel(); return nil })
		if !errors.Is(err, ErrReload) || !errors.Is(err, ErrFenced) {
			t.Fatalf("got %v, want ErrReload", err)
		}
		if _, err := st.Apply(context.Background(), batchOf(st)); !errors.Is(err, ErrReload) {
			t.Errorf("the stream goes on with %v", err)
		}
	})
}

func TestPassing(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"deadlock":        {&mysql.MySQLError{Number: 1213}, true},
		"invalid conn":    {fmt.Errorf("move: %w", mysql.ErrInvalidConn), true},
		"bad conn":        {fmt.Errorf("begin: %w", driver.ErrBadConn), true},
		"busy":            {liteError{5}, true},
		"data too long":   {&mysql.MySQLError{Number: 1406}, false},
		"something":       {errors.New("x"), false},
		"nothing at all":  {nil, false},
		"fenced is final": {ErrFenced, false},
	} {
		if got := Passing(tt.err); got != tt.want {
			t.Errorf("%s: Passing(%v) = %v", name, tt.err, got)
		}
	}
}

type liteError struct{ code int }

func (e liteError) Error() string { return "lite" }
func (e liteError) Code() int     { return e.code }

func TestRetries(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		again bool
	}{
		"deadlock":        {&mysql.MySQLError{Number: 1213}, true},
		"lock wait":       {&mysql.MySQLError{Number: 1205}, true},
		"record changed":  {&mysql.MySQLError{Number: 1020}, true},
		"duplicate":       {&mysql.MySQLError{Number: 1062}, false},
		"busy":            {liteError{5}, true},
		"busy snapshot":   {liteError{5 | 2<<8}, true},
		"locked":          {liteError{6}, true},
		"constraint":      {liteError{19}, false},
		"something":       {errors.New("x"), false},
		"wrapped":         {fmt.Errorf("write: %w", &mysql.MySQLError{Number: 1213}), true},
		"fenced is final": {ErrFenced, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(openSQLite(t), SQLite, Options{Attempts: 3})
			if err != nil {
				t.Fatal(err)
			}
			calls := 0
			err = s.write(context.Background(), func(*sqlx.Tx) error { calls++; return tt.err })
			if want := map[bool]int{true: 3, false: 1}[tt.again]; calls != want || !errors.Is(err, tt.err) {
				t.Errorf("%d attempts, want %d: %v", calls, want, err)
			}
		})
	}
}

// A batch that failed half way is applied whole the second time: memory has not moved before the commit.
func TestApplyAfterAFailure(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		st := started(t, s, 0)
		mustApply(t, st, batchOf(st, sighted("orders", "a", 1, 1)))
		if _, err := s.db.Exec(`ALTER TABLE event RENAME TO event_away`); err != nil {
			t.Fatal(err)
		}
		changed := sighted("orders", "a", 3, 1)
		changed.Attrs.Weight = 5
		b := batchOf(st, sighted("orders", "a", 2, 1), changed, sighted("orders", "b", 1, 2))
		if _, err := st.Apply(context.Background(), b); err == nil || errors.Is(err, ErrFenced) {
			t.Fatalf("apply without its table: %v", err)
		}
		if _, err := s.db.Exec(`ALTER TABLE event_away RENAME TO event`); err != nil {
			t.Fatal(err)
		}
		if res := mustApply(t, st, b); res.Applied != 3 || res.Joined != 1 || res.Revision != 2 {
			t.Errorf("second attempt: %+v", res)
		}
		checkIndex(t, s, st)
	})
}

// More newly silent ones than a batch judges: the next goes on, also when the clock has not moved.
func TestJudgementGoesOnAtTheSameClock(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		st := started(t, s, 0)
		var beats []*Sighting
		for i := range maxSuspects + 50 {
			beats = append(beats, sighted("orders", fmt.Sprint(i), 1, i))
		}
		mustApply(t, st, batchOf(st, beats...))
		if res := mustApply(t, st, pulsed(st, 1, 40)); res.Unproven != maxSuspects {
			t.Fatalf("after the silence: %+v", res)
		}
		if res := mustApply(t, st, batchOf(st)); res.Unproven != maxSuspects+50 {
			t.Errorf("after the next batch: %+v", res)
		}
	})
}

// One that is overdue but has news in the batch is looked at with the next, also when the clock has not moved.
func TestNewsPostponesTheJudgement(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		st := started(t, s, 0)
		mustApply(t, st, batchOf(st, sighted("orders", "a", 1, 1)))
		b := pulsed(st, 1, 40)
		news := sighted("orders", "a", 2, 1)
		news.Attrs.Weight = 2
		b.Records = append(b.Records, Record{Offset: b.Next, Sighting: news})
		b.Next++
		mustApply(t, st, b)
		if st.index.earliest >= st.clock.micros {
			t.Errorf("looks from %d on, the clock stands at %d", st.index.earliest, st.clock.micros)
		}
	})
}

// Steady beats of several in one batch, and again: no revision, no event, one transaction.
func TestSteadyBeatsChangeNothing(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		st := started(t, s, 0)
		mustApply(t, st, batchOf(st, sighted("a", "1", 1, 1), sighted("a", "2", 1, 2)))
		var events int
		for seq := int64(2); seq < 20; seq += 2 {
			res := mustApply(t, st, batchOf(st, sighted("a", "2", seq, 2), sighted("a", "1", seq, 1), sighted("a", "2", seq+1, 2)))
			if res.Revision != 1 || res.Applied != 3 {
				t.Fatalf("steady beats: %+v", res)
			}
		}
		if err := s.db.Get(&events, `SELECT COUNT(*) FROM event WHERE kind <> ?`, EventJoined); err != nil || events != 0 {
			t.Errorf("%d events: %v", events, err)
		}
	})
}
