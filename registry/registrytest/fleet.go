package registrytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/upstrand/upstrand/registry"
)

// Now is the wall clock of the fleet: all its moments lie a little before it.
func Now() time.Time { return time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC) }

// Before is the moment d before Now, in Unix µs.
func Before(d time.Duration) int64 { return Now().Add(-d).UnixMicro() }

// Digest is a digest of 64 times the digit.
func Digest(digit string) string { return strings.Repeat(digit, 64) }

// Row is one row of a table by its columns. Columns that are left out are 0 or empty.
type Row map[string]any

// Insert writes a row.
func Insert(tb testing.TB, db *sqlx.DB, table string, row Row) {
	tb.Helper()
	row = maps.Clone(row)
	for column, zero := range zeros(tb, db, table) {
		if _, given := row[column]; !given {
			row[column] = zero
		}
	}
	columns := slices.Sorted(maps.Keys(row))
	args := make([]any, len(columns))
	for i, c := range columns {
		args[i] = row[c]
	}
	query := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(columns, ", "),
		strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", "))
	if _, err := db.Exec(query, args...); err != nil {
		tb.Fatalf("insert into %s: %v", table, err)
	}
}

// zeros are the columns of a table with their zero values, so that rows need not name what they don't care about.
func zeros(tb testing.TB, db *sqlx.DB, table string) Row {
	tb.Helper()
	rows, err := db.Query("SELECT * FROM " + table + " LIMIT 0")
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		tb.Fatal(err)
	}
	zero := Row{}
	for _, t := range types {
		zero[t.Name()] = any("")
		if strings.Contains(t.DatabaseTypeName(), "INT") {
			zero[t.Name()] = 0
		}
	}
	return zero
}

// Instance is a live instance of a service, seen 2 s ago on partition 0, as a base for others.
type Instance struct {
	ID      int64
	Service string
	IID     string
	With    Row // of table instance
	Hot     Row // of table hot; nil: as the base
	Unseen  bool
}

// Add writes an instance with its hot row.
func Add(tb testing.TB, db *sqlx.DB, in Instance) {
	tb.Helper()
	row := Row{
		"id": in.ID, "service": in.Service, "iid": in.IID, "incarnation": 1764410000000, "status": "up", "liveness": "live",
		"cause": "first beat", "scheme": "http", "ip": fmt.Sprintf("10.0.0.%d", in.ID), "port": 8080, "weight": 1, "max_fails": 1,
		"fail_timeout": micros(10 * time.Second), "beat_interval": micros(10 * time.Second), "stale_after": micros(30 * time.Second),
		"created_at": Before(time.Hour), "changed_at": Before(time.Hour), "revision": in.ID,
	}
	maps.Copy(row, in.With)
	Insert(tb, db, "instance", row)
	if in.Unseen {
		return
	}
	hot := Row{
		"id": in.ID, "part": 0, "clock": micros(998 * time.Second), "incarnation": row["incarnation"], "seq": 360,
		"received_at": Before(2 * time.Second), "skew": micros(12 * time.Millisecond),
	}
	maps.Copy(hot, in.Hot)
	Insert(tb, db, "hot", hot)
}

func micros(d time.Duration) int64 { return d.Microseconds() }

// Fleet writes the fleet: three services (orders with an instance of every liveness, billing without a routable one,
// web without any), five proxies, three partitions, seven events, four rejected records, three topology versions.
func Fleet(tb testing.TB, db *sqlx.DB) {
	tb.Helper()
	streams(tb, db)
	orders(tb, db)
	others(tb, db)
	proxies(tb, db)
	history(tb, db)
	versions(tb, db)
}

func streams(tb testing.TB, db *sqlx.DB) {
	for _, r := range []Row{
		{"part": 0, "next_offset": 5000, "log_end": 5000, "clock": micros(1000 * time.Second), "owner": "listener-1", "updated_at": Before(400 * time.Millisecond)},
		{"part": 1, "next_offset": 4100, "log_end": 4321, "clock": micros(700*time.Second + 250*time.Millisecond), "owner": "listener-2", "updated_at": Before(95 * time.Second)},
		{"part": 2, "next_offset": -1, "owner": "listener-2", "updated_at": Before(time.Second)},
	} {
		Insert(tb, db, "stream", r)
	}
}

func orders(tb testing.TB, db *sqlx.DB) {
	Insert(tb, db, "service", Row{"name": "orders", "created_at": Before(time.Hour), "revision": 1})
	Insert(tb, db, "route_claim", Row{"path": "/orders", "service": "orders", "claimed_at": Before(time.Hour), "revision": 1})
	Insert(tb, db, "route_claim", Row{"path": "/basket", "service": "orders", "claimed_at": Before(time.Hour), "revision": 1})
	for _, in := range []Instance{
		{ID: 1, IID: "a1", With: Row{
			"url": "/orders/", "weight": 4, "max_conns": 100, "zone": "a", "app_version": "1.4.0",
			"tags": `["blue","canary"]`, "meta": `{"rack":"r7","team":"shop"}`, "slow_start": micros(20 * time.Second),
		}, Hot: Row{"in_flight": 7, "rps_milli": 12500, "latency_us": 18250, "cpu_milli": 250, "memory": 256 << 20}},
		{ID: 2, IID: "a2", With: Row{"status": "draining", "cause": "says draining", "zone": "b", "app_version": "1.4.0", "tags": `["canary"]`}},
		{ID: 3, IID: "a3", With: Row{
			"liveness": "unproven", "cause": "overdue with 3 of 5 of its service", "zone": "a", "app_version": "1.3.9", "unproven_clock": micros(940 * time.Second),
		}, Hot: Row{"clock": micros(905 * time.Second), "received_at": Before(95 * time.Second)}},
		{ID: 4, IID: "a4", With: Row{"liveness": "stale", "cause": "no beat for 30s", "zone": "b", "app_version": "1.3.9"},
			Hot: Row{"clock": micros(800 * time.Second), "received_at": Before(200 * time.Second), "skew": micros(61*time.Second + 500*time.Millisecond)}},
		{ID: 5, IID: "a5", With: Row{"status": "leaving", "liveness": "left", "cause": "goodbye", "zone": "b", "app_version": "1.3.9"}},
		{ID: 6, IID: "a6", With: Row{"ip": "2001:db8::7", "incarnation": 0, "scheme": "https", "port": 8443},
			Hot: Row{"part": 1, "clock": micros(700 * time.Second), "seq": 0, "skew": int64(registry.SkewUnknown)}},
		{ID: 7, IID: "a7", With: Row{"liveness": "superseded", "cause": "billing/b1 owns 10.0.0.7:8080 now", "zone": "a"}, Hot: Row{"part": 9}},
	} {
		in.Service = "orders"
		Add(tb, db, in)
	}
}

func others(tb testing.TB, db *sqlx.DB) {
	Insert(tb, db, "service", Row{"name": "billing", "created_at": Before(2 * time.Hour), "emptied_at": Before(10 * time.Minute), "revision": 8})
	Insert(tb, db, "service", Row{"name": "web", "created_at": Before(3 * time.Hour), "emptied_at": Before(time.Hour), "revision": 2})
	Insert(tb, db, "route_claim", Row{"path": "/", "service": "web", "claimed_at": Before(3 * time.Hour), "revision": 2})
	Add(tb, db, Instance{ID: 8, Service: "billing", IID: "b1", With: Row{"liveness": "stale", "cause": "no beat for 30s", "app_version": "2"}})
}

func proxies(tb testing.TB, db *sqlx.DB) {
	reports := []struct{ iid, report string }{
		{"p1", report(43, Digest("c"), "")},
		{"p2", report(40, Digest("a"), "digest of version 43 can't be reproduced")},
		{"p3", report(44, Digest("d"), "")},
		{"p4", ""},
		{"p5", report(43, Digest("e"), "")},
	}
	for i, r := range reports {
		id := int64(20 + i)
		Add(tb, db, Instance{ID: id, Service: "upstrand-proxy", IID: r.iid, With: Row{"zone": "a", "cause": "first beat"}})
		if r.report != "" {
			Insert(tb, db, "agent_report", Row{"id": id, "report": r.report, "received_at": Before(time.Duration(i+1) * time.Second)})
		}
	}
}

func report(version int, digest, lastError string) string {
	return fmt.Sprintf(`{"commit_age_ms":"1500","last_error":%q,"topology_age_ms":"600000","topology_source":"topic","topology_digest":%q,"topology_epoch":"3","topology_version":"%d"}`, lastError, digest, version)
}

func history(tb testing.TB, db *sqlx.DB) {
	for i, r := range []Row{
		{"kind": "joined", "service": "web", "iid": "w1", "actor": "listener-1", "cause": "first beat", "revision": 1},
		{"kind": "joined", "service": "orders", "iid": "a1", "actor": "listener-1", "cause": "first beat", "detail": `{"addr":"10.0.0.1:8080"}`, "revision": 2},
		{"kind": "left", "service": "orders", "iid": "a5", "actor": "listener-1", "cause": "goodbye", "revision": 5},
		{"kind": "stream", "actor": "listener-2", "cause": "partition 1: topic recreated"},
		{"kind": "stale", "service": "orders", "iid": "a4", "actor": "listener-1", "cause": "no beat for 30s", "revision": 6},
		{"kind": "stale", "service": "billing", "iid": "b1", "actor": "listener-1", "cause": "no beat for 30s", "revision": 7},
		{"kind": "unproven", "service": "orders", "actor": "listener-1", "cause": "3 of 5 overdue at once", "revision": 8},
	} {
		r["seq"], r["happened_at"] = 101+i, Before(time.Duration(70-10*i)*time.Minute)
		Insert(tb, db, "event", r)
	}
	for i, r := range []Row{
		{"part": 0, "log_offset": 17, "record_key": "orders/a1", "reason": "bad_port", "detail": "port: 0 is not a port from 1 to 65535", "value": []byte(`{"service":"orders","id":"a1","port":0}`)},
		{"part": 1, "log_offset": 4, "reason": "not_json", "detail": "a record that is not JSON", "value": []byte("\x00\xffbin\\ary\x1b[31m")},
		{"part": 1, "log_offset": 5, "record_key": "\x1b]0;x", "reason": "not_json", "detail": "a record that is not JSON", "value": []byte("hello")},
		{"part": 1, "log_offset": 6, "record_key": "x", "reason": "not_object", "detail": "an array", "value": []byte("[]")},
	} {
		r["received_at"] = Before(time.Duration(30-10*(i/2)) * time.Minute) // two of one moment each
		Insert(tb, db, "rejected", r)
	}
	for _, r := range []Row{
		{"part": 0, "reason": "bad_port", "n": 1}, {"part": 0, "reason": "not_json", "n": 5000}, {"part": 1, "reason": "not_json", "n": 2}, {"part": 1, "reason": "not_object", "n": 1},
	} {
		Insert(tb, db, "rejected_count", r)
	}
}

func versions(tb testing.TB, db *sqlx.DB) {
	for _, r := range []Row{
		{"version": 40, "epoch": 2, "digest": Digest("a"), "records": 5, "changed": 5, "cause": "orders/a1 joined", "revision": 4, "created_at": Before(time.Hour)},
		{"version": 41, "epoch": 2, "digest": Digest("b"), "records": 6, "changed": 2, "cause": "orders/a5 left", "revision": 6, "created_at": Before(50 * time.Minute)},
		{"version": 43, "epoch": 3, "digest": Digest("c"), "records": 5, "changed": 2, "cause": "billing/b1 went stale", "revision": 8, "created_at": Before(10 * time.Minute)},
	} {
		Insert(tb, db, "topology_version", r)
	}
	orders := func(ids ...string) string {
		var list []string
		for i, id := range ids {
			list = append(list, fmt.Sprintf(`{"id":%q,"order":%d,"addr":"10.0.0.%d:8080","weight":4,"zone":"a"}`, id, i+1, i+1))
		}
		return `{"name":"orders","instances":[` + strings.Join(list, ",") + `]}`
	}
	for _, r := range []Row{
		{"record_key": "service/orders", "version": 40, "value": []byte(orders("a1", "a2", "a5"))},
		{"record_key": "service/orders", "version": 41, "value": []byte(orders("a1", "a2"))},
		{"record_key": "service/billing", "version": 41, "value": []byte(`{"name":"billing","instances":[{"id":"b1","order":8,"scheme":"https","addr":"10.0.0.8:8443","drain":true,"unproven":true}]}`)},
		{"record_key": "service/billing", "version": 43, "value": []byte(`{"name":"billing","instances":[]}`)},
		{"record_key": "upstream/orders", "version": 40, "value": []byte(`{"name":"orders","origin":"derived","directives":[["discover","orders"]]}`)},
		{"record_key": "upstream/old", "version": 40, "value": []byte(`{"name":"old","origin":"declared","directives":[["server","10.9.9.9:80","weight=2"],["server","10.9.9.8:80","backup"]]}`)},
		{"record_key": "upstream/old", "version": 43, "value": nil},
		{"record_key": "upstrand/orders", "version": 40, "value": []byte(`{"name":"orders","origin":"derived","directives":[["upstream","~^orders@"]],"own_zone_first":true}`)},
		{"record_key": "route//orders", "version": 40, "value": []byte(`{"path":"/orders","origin":"derived","upstrand":"orders"}`)},
	} {
		Insert(tb, db, "topology_record", r)
	}
}
