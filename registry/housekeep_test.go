package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
)

// Limited steps delete all the same, and what is young stays.
func TestHousekeepInSteps(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	onEach(t, Options{Now: func() time.Time { return now }}, func(t *testing.T, s *Store) {
		ctx, st := context.Background(), started(t, s, 0)
		var beats, byes []*Sighting
		for i := range 25 {
			b := sighted("orders", fmt.Sprint(i), 1, i)
			bye := *b
			bye.Seq, bye.Status = 2, StatusLeaving
			beats, byes = append(beats, b), append(byes, &bye)
		}
		mustApply(t, st, batchOf(st, beats...))
		mustApply(t, st, batchOf(st, byes[:20]...))
		b := batchOf(st)
		for i := range int64(30) {
			b.Rejected = append(b.Rejected, Rejected{Offset: b.From + i, Reason: "bad", At: now.UnixMicro()})
		}
		b.Next += 30
		mustApply(t, st, b)
		done, err := s.Housekeep(ctx, now.Add(25*time.Hour), Policy{Step: 3, EventsFor: time.Hour, RejectedFor: time.Hour})
		if err != nil || done.Forgotten != 20 || done.Rejected != 30 || done.Events != 65 || done.Services != 0 {
			t.Errorf("%+v: %v", done, err)
		}
		for table, want := range map[string]int{"instance": 5, "hot": 5, "address": 5, "rejected": 0, "event": 0, "service": 1} {
			var n int
			if err := s.db.Get(&n, `SELECT COUNT(*) FROM `+table); err != nil || n != want {
				t.Errorf("%d rows of %s, want %d: %v", n, table, want, err)
			}
		}
		if _, err := s.Changes(ctx, 1); !errors.Is(err, ErrTooOld) {
			t.Errorf("changes since before the rows that are gone: %v", err)
		}
		// One that is back gets a new key: keys are not handed out again.
		beats[3].Incarnation = 2
		mustApply(t, st, batchOf(st, beats[3]))
		snap, err := s.Snapshot(ctx)
		if err != nil || len(snap.Instances) != 6 || snap.Instances[5].DenseID != 26 {
			t.Errorf("after a return: %+v, %v", snap.Instances, err)
		}
	})
}

// A superseded instance that still beats is not forgotten: as a new one it would claim an address that is another's.
func TestHousekeepKeepsWhoStillBeats(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	onEach(t, Options{Now: func() time.Time { return now }}, func(t *testing.T, s *Store) {
		ctx, st := context.Background(), started(t, s, 0)
		mustApply(t, st, batchOf(st, sighted("a", "old", 1, 1), sighted("b", "new", 1, 1)))
		late := sighted("a", "old", 2, 1)
		late.ReceivedAt = now.Add(48 * time.Hour).UnixMicro()
		mustApply(t, st, batchOf(st, late))
		if done, err := s.Housekeep(ctx, now.Add(49*time.Hour), Policy{}); err != nil || done.Forgotten != 0 {
			t.Errorf("%+v: %v", done, err)
		}
		if done, err := s.Housekeep(ctx, now.Add(80*time.Hour), Policy{}); err != nil || done.Forgotten != 1 {
			t.Errorf("after its last beat: %+v: %v", done, err)
		}
	})
}

// Nor does its service go, with everything that is known of it: its next beat would be a new instance's.
func TestHousekeepKeepsTheServiceOfWhoStillBeats(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	onEach(t, Options{Now: func() time.Time { return start }}, func(t *testing.T, s *Store) {
		ctx, st := context.Background(), started(t, s, 0)
		mustApply(t, st, batchOf(st, sighted("a", "old", 1, 1), sighted("b", "new", 1, 1)))
		day := func(n int) time.Time { return start.Add(time.Duration(n) * 24 * time.Hour) }
		beat := func(seq int64, at time.Time) {
			t.Helper()
			late := sighted("a", "old", seq, 1)
			late.ReceivedAt = at.UnixMicro()
			if res := mustApply(t, st, batchOf(st, late)); res.Ignored[IgnoredAddress] != 1 {
				t.Errorf("the beat of the superseded one: %+v", res)
			}
		}
		beat(2, day(8))
		if done, err := s.Housekeep(ctx, day(8), Policy{}); err != nil || done.Services != 0 || done.Forgotten != 0 {
			t.Errorf("%+v: %v", done, err)
		}
		beat(3, day(8))
		if done, err := s.Housekeep(ctx, day(16), Policy{}); err != nil || done.Services != 1 || done.Forgotten != 1 {
			t.Errorf("after its last beat: %+v: %v", done, err)
		}
	})
}

// A beat between the look for old rows and their lock keeps its row.
func TestForgetLooksAgainUnderTheLock(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	onEach(t, Options{Now: func() time.Time { return start }}, func(t *testing.T, s *Store) {
		ctx, st := context.Background(), started(t, s, 0)
		mustApply(t, st, batchOf(st, sighted("a", "old", 1, 1), sighted("b", "new", 1, 1)))
		before := start.Add(24 * time.Hour).UnixMicro()
		late := sighted("a", "old", 2, 1)
		late.ReceivedAt = before
		mustApply(t, st, batchOf(st, late))
		err := s.write(ctx, func(tx *sqlx.Tx) error {
			n, err := s.forgetRows(ctx, tx, []int64{1, 2}, before)
			if n != 0 {
				t.Errorf("%d forgotten", n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// Of several reports of an agent in one batch the newest stays, whatever path each beat takes.
func TestTheNewestReportStays(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		ctx, st := context.Background(), started(t, s, 0)
		beat := func(seq int64, report string) *Sighting {
			x := sighted("upstrand-proxy", "a", seq, 1)
			x.Report = json.RawMessage(report)
			return x
		}
		expect := func(want string) {
			t.Helper()
			agents, err := s.Agents(ctx)
			if err != nil || len(agents) != 1 || string(agents[0].Report) != want {
				t.Errorf("%+v, want the report %s: %v", agents, want, err)
			}
		}
		mustApply(t, st, batchOf(st, beat(1, `"1"`)))
		slow := beat(3, `"3"`)
		slow.Attrs.Weight = 2
		mustApply(t, st, batchOf(st, beat(2, `"2"`), slow))
		expect(`"3"`)
		steadies := batchOf(st, beat(4, `"4"`), beat(5, `"3"`))
		for _, r := range steadies.Records {
			r.Sighting.Attrs.Weight = 2
		}
		mustApply(t, st, steadies)
		expect(`"3"`)
	})
}

func TestAgents(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		ctx, st := context.Background(), started(t, s, 0)
		beat := func(id string, seq int64, report string) *Sighting {
			x := sighted("upstrand-proxy", id, seq, 1)
			x.ReceivedAt, x.Report = 1000+seq, json.RawMessage(report)
			return x
		}
		first := mustApply(t, st, batchOf(st, beat("a", 1, `{"v":"1"}`), beat("b", 1, `{"v":"1"}`), sighted("orders", "a", 1, 2)))
		got := mustApply(t, st, batchOf(st, beat("a", 2, `{"v":"2"}`), beat("b", 2, `{"v":"1"}`)))
		if got.Revision != first.Revision {
			t.Errorf("a report raised the revision from %d to %d", first.Revision, got.Revision)
		}
		st = started(t, s, 0) // a new owner
		mustApply(t, st, batchOf(st, beat("a", 3, `{"v":"3"}`)))
		mustApply(t, st, batchOf(st, beat("a", 4, `{"v":"3"}`)))
		agents, err := s.Agents(ctx)
		if err != nil || len(agents) != 2 {
			t.Fatalf("%d agents: %v", len(agents), err)
		}
		for i, want := range []struct {
			id, report string
			at         int64
		}{{"a", `{"v":"3"}`, 1004}, {"b", `{"v":"1"}`, 1002}} {
			a := agents[i]
			if a.Instance.ID != want.id || string(a.Report) != want.report || a.ReceivedAt != want.at || a.Instance.Liveness != Live {
				t.Errorf("agent %+v, want %+v", a, want)
			}
		}
	})
}

// What goes into a row comes out again, whole.
func TestAttributesSurvive(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		st := started(t, s, 0)
		x := sighted("orders", "a", 1, 1)
		x.Attrs = Attrs{Scheme: "https", IP: "fd00::1", Port: 65535, URL: "/bücher/", Weight: 7, MaxConns: 9, MaxFails: 3,
			FailTimeout: 1500 * time.Millisecond, SlowStart: 30 * time.Second, Zone: "zürich-𝄞", Version: "v1\"'\\", Tags: []string{"a", "b\"c"},
			Meta: map[string]string{"k": "v'\\", "ä": "ö"}}
		x.Interval, x.StaleAfter = 2500*time.Millisecond, 7500*time.Millisecond
		mustApply(t, st, batchOf(st, x))
		snap, err := s.Snapshot(context.Background())
		if err != nil || len(snap.Instances) != 1 {
			t.Fatal(snap, err)
		}
		got := snap.Instances[0]
		if !sameAttrs(&got.Attrs, &x.Attrs) || got.Interval != x.Interval || got.StaleAfter != x.StaleAfter {
			t.Errorf("got %+v, want %+v", got.Attrs, x.Attrs)
		}
		// A new owner finds them equal: the next beat is a steady one.
		st = started(t, s, 0)
		y := *x
		y.Seq = 2
		if res := mustApply(t, st, batchOf(st, &y)); res.Revision != 1 {
			t.Errorf("a steady beat after a new owner raised the revision: %+v", res)
		}
	})
}

func TestEvents(t *testing.T) {
	onEach(t, Options{}, func(t *testing.T, s *Store) {
		ctx := context.Background()
		err := s.AddEvent(ctx, Event{Kind: "declared_wins", Service: "orders", Actor: "confgen", Cause: strings.Repeat("ä", 300),
			Detail: json.RawMessage(`{"a":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.ListEvents(ctx, EventFilter{})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		e := list[0]
		if e.Kind != "declared_wins" || e.At == 0 || len([]rune(e.Cause)) != 255 || string(e.Detail) != `{"a":1}` {
			t.Errorf("event %+v", e)
		}
		if err := s.AddEvent(ctx, Event{Kind: "x", Detail: make([]byte, 70000)}); err == nil {
			t.Error("a detail of 70,000 bytes was taken")
		}
	})
}

func TestOptions(t *testing.T) {
	db := openSQLite(t)
	for name, o := range map[string]Options{
		"limit": {UnprovenLimit: -1}, "share": {ReleaseShare: 1.5}, "keep": {RejectedKeep: -1}, "attempts": {Attempts: -1},
	} {
		if _, err := Open(db, SQLite, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := Open(nil, SQLite, Options{}); err == nil {
		t.Error("no database: accepted")
	}
	if _, err := Open(db, 0, Options{}); err == nil {
		t.Error("no dialect: accepted")
	}
}
