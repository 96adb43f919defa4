package listener

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/segmentio/kafka-go"
	_ "modernc.org/sqlite"

	"github.com/upstrand/upstrand/migrations"
	"github.com/upstrand/upstrand/registry"
)

// storeRecorder is the real registry on SQLite. While away is set it fails like a database out of reach.
type storeRecorder struct {
	store *registry.Store
	db    *sqlx.DB
	away  atomic.Bool
}

func newStore(t testing.TB) *storeRecorder {
	t.Helper()
	db, err := sqlx.Open("sqlite", registry.SQLiteDSN(filepath.Join(t.TempDir(), "registry.db")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := migrations.Up(context.Background(), db.DB, migrations.SQLite); err != nil {
		t.Fatal(err)
	}
	store, err := registry.Open(db, registry.SQLite, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &storeRecorder{store: store, db: db}
}

func (r *storeRecorder) OpenStream(ctx context.Context, part int32, owner string) (Stream, error) {
	if r.away.Load() {
		return nil, errAway
	}
	s, err := r.store.OpenStream(ctx, part, owner)
	if err != nil {
		return nil, err
	}
	return storeStream{s, r}, nil
}

type storeStream struct {
	*registry.Stream
	r *storeRecorder
}

func (s storeStream) Apply(ctx context.Context, b registry.Batch) (registry.Result, error) {
	if s.r.away.Load() {
		return registry.Result{}, errAway
	}
	return s.Stream.Apply(ctx, b)
}

// all waits until the n instances of orders have seq in the registry, live.
func (r *storeRecorder) all(t testing.TB, limit time.Duration, n int, seq int64) {
	t.Helper()
	eventually(t, limit, fmt.Sprintf("%d live instances at seq %d", n, seq), func() bool {
		var got int
		if err := r.db.Get(&got, `SELECT COUNT(*) FROM instance i JOIN hot h ON h.id = i.id WHERE i.service = 'orders' AND i.liveness = 'live' AND h.seq = ?`, seq); err != nil {
			t.Fatal(err)
		}
		return got == n
	})
}

func (r *storeRecorder) rejected(t testing.TB) (counts map[string]int64, sum int64) {
	t.Helper()
	list, err := r.store.RejectedCounts(context.Background(), registry.RejectedFilter{})
	if err != nil {
		t.Fatal(err)
	}
	counts = map[string]int64{}
	for _, c := range list {
		counts[c.Reason] += c.Count
		sum += c.Count
	}
	return counts, sum
}

// badRecords are one of each kind, with the reason that it must be counted under.
func badRecords() map[string]kafka.Message {
	const good = `"service":"orders","id":"x","ip":"10.0.0.1","port":80`
	value := func(s string) kafka.Message { return kafka.Message{Value: []byte(s)} }
	return map[string]kafka.Message{
		"empty":            {Key: []byte("orders/x")},
		"too_large":        value(`{` + good + `,"zone":"` + strings.Repeat("a", 70<<10) + `"}`),
		"not_utf8":         value("{\"service\":\"\xff\xfe\"}"),
		"not_json":         value(`{"service":`),
		"not_object":       value(`[1,2]`),
		"key_mismatch":     {Key: []byte("orders/y"), Value: []byte(`{` + good + `}`)},
		"duplicate_field":  value(`{` + good + `,"port":81}`),
		"unknown_field":    value(`{` + good + `,"colour":"red"}`),
		"bad_type":         value(`{"service":"orders","id":"x","ip":"10.0.0.1","port":"80"}`),
		"missing_field":    value(`{"service":"orders","id":"x"}`),
		"bad_service":      value(`{"service":"Orders!","id":"x","ip":"10.0.0.1","port":80}`),
		"bad_id":           value(`{"service":"orders","id":"a b","ip":"10.0.0.1","port":80}`),
		"bad_ip":           value(`{"service":"orders","id":"x","ip":"10.0.0.256","port":80}`),
		"bad_port":         value(`{"service":"orders","id":"x","ip":"10.0.0.1","port":70000}`),
		"bad_url":          value(`{` + good + `,"url":"orders"}`),
		"bad_status":       value(`{` + good + `,"status":"happy"}`),
		"bad_weight":       value(`{` + good + `,"weight":-1}`),
		"bad_scheme":       value(`{` + good + `,"scheme":"ftp"}`),
		"bad_sent_at":      value(`{` + good + `,"sent_at":"yesterday"}`),
		"bad_interval":     value(`{` + good + `,"interval":"1h"}`),
		"bad_fail_timeout": value(`{` + good + `,"fail_timeout":"-1s"}`),
		"bad_pulse":        {Key: []byte(pulseKey), Value: []byte(`{"n":1}`)},
	}
}

func TestTenThousandBadRecordsBetweenGoodOnes(t *testing.T) {
	b := startBroker(t, "", 0)
	b.create(t, 6)
	rec := newStore(t)
	l := startListener(t, scaled(b.addr, rec))
	s := newSender(t, b.addr)
	s.w.Balancer = &kafka.RoundRobin{} // bad records, most without a key, on every partition
	const rounds, n = 460, 20
	bad := badRecords()
	for range rounds {
		s.n++
		var msgs []kafka.Message
		for _, m := range bad {
			msgs = append(msgs, m)
		}
		s.write(t, msgs...)
	}
	s.w.Balancer = &kafka.Hash{}
	for range 20 {
		s.beats(t, n)
	}
	rec.all(t, 30*time.Second, n, s.n)
	eventually(t, 30*time.Second, "caught up", func() bool { return l.Ready() == nil })
	counts, sum := rec.rejected(t)
	for reason := range bad {
		if counts[reason] != rounds {
			t.Errorf("%s: counted %d times, sent %d", reason, counts[reason], rounds)
		}
		if got := metricValue(l.met.rejected.WithLabelValues(reason)); got != rounds {
			t.Errorf("%s: metric says %v", reason, got)
		}
	}
	if want := int64(len(bad) * rounds); sum != want || want < 10000 {
		t.Errorf("%d bad records counted, %d sent", sum, want)
	}
	if got := metricValue(l.met.generations); got != 1 {
		t.Errorf("%v generations", got)
	}
}

// With the real registry: members come and go, and each bad record is counted exactly once, which it would not be if a
// batch were applied twice or dropped.
func TestRebalancesWithTheStore(t *testing.T) {
	b := startBroker(t, "", 0)
	b.create(t, 6)
	rec := newStore(t)
	s := newSender(t, b.addr)
	const n = 60
	var sent int64
	members := []*running{startListener(t, scaled(b.addr, rec))}
	for round := range 8 {
		switch round {
		case 1, 2, 5:
			members = append(members, startListener(t, scaled(b.addr, rec)))
		case 3, 6:
			members[0].stop(t)
			members = members[1:]
		case 4:
			members[0].wires.cutAll() // as a kill looks to the group
			members[0].stop(t)
			members = members[1:]
		}
		for range 10 {
			s.beats(t, n)
			for i := range 12 {
				s.write(t, kafka.Message{Key: fmt.Appendf(nil, "bad/%d", i), Value: []byte("{")})
				sent++
			}
		}
	}
	rec.all(t, 30*time.Second, n, s.n)
	eventually(t, 30*time.Second, "every bad record", func() bool { _, sum := rec.rejected(t); return sum >= sent })
	for _, m := range members {
		eventually(t, 10*time.Second, "ready", func() bool { return m.Ready() == nil })
		m.stop(t)
	}
	if _, sum := rec.rejected(t); sum != sent {
		t.Errorf("%d bad records counted, %d sent", sum, sent)
	}
}

// A database that goes away costs neither membership nor a record.
func TestDatabaseAwayAndBack(t *testing.T) {
	b := startBroker(t, "", 0)
	b.create(t, 6)
	rec := newStore(t)
	l := startListener(t, scaled(b.addr, rec))
	s := newSender(t, b.addr)
	const n = 50
	s.beats(t, n)
	rec.all(t, 10*time.Second, n, 1)
	eventually(t, 10*time.Second, "ready", func() bool { return l.Ready() == nil })
	generations := metricValue(l.met.generations)

	rec.away.Store(true)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		s.beats(t, n)
	}
	if err := l.Ready(); !errors.Is(err, errAway) {
		t.Errorf("ready says %v", err)
	}
	rec.away.Store(false)
	s.beats(t, n)
	rec.all(t, 5*time.Second, n, s.n)
	eventually(t, 5*time.Second, "ready again", func() bool { return l.Ready() == nil })
	if got := metricValue(l.met.generations); got != generations {
		t.Errorf("generation %v, was %v: membership was lost", got, generations)
	}
}

// A fenced owner drops its batch: the beat that another owner had applied already is not applied again.
func TestFencedByAnotherOwnerOfTheStore(t *testing.T) {
	b := startBroker(t, "", 0)
	b.create(t, 1)
	rec := newStore(t)
	l := startListener(t, scaled(b.addr, rec))
	s := newSender(t, b.addr)
	s.beats(t, 5)
	rec.all(t, 10*time.Second, 5, 1)
	// Another owner moves the partition on, as one would that the group has given it to.
	eventually(t, 10*time.Second, "another owner's batch", func() bool {
		st, err := rec.store.OpenStream(context.Background(), 0, "other")
		if err != nil {
			t.Fatal(err)
		}
		next := st.State().NextOffset
		_, err = st.Apply(context.Background(), registry.Batch{From: next, Next: next + 1, LogEnd: next + 1})
		return err == nil
	})
	s.beats(t, 5)
	s.beats(t, 5)
	rec.all(t, 10*time.Second, 5, 3)
	eventually(t, 10*time.Second, "the fence", func() bool { return metricValue(l.met.fenced) >= 1 })
	eventually(t, 10*time.Second, "ready again", func() bool { return l.Ready() == nil })
}
