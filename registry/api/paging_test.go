package api

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/registrytest"
	"github.com/upstrand/upstrand/registry/wire"
)

// pages reads all pages of target in pages of limit rows; between is called before each next one.
func pages[T any](t *testing.T, target string, limit int, page func(target string) ([]T, string), name func(T) string, between func()) []string {
	t.Helper()
	var names []string
	for cursor, n := "", 0; ; n++ {
		if n > 10_000 {
			t.Fatalf("%s never ends", target)
		}
		place := ""
		if cursor != "" {
			place = "&cursor=" + url.QueryEscape(cursor)
		}
		rows, next := page(fmt.Sprintf("%slimit=%d%s", target, limit, place))
		for _, row := range rows {
			names = append(names, name(row))
		}
		if len(rows) != limit && next != "" || len(rows) > limit {
			t.Fatalf("%s: a page of %d of %d rows with cursor %q", target, len(rows), limit, next)
		}
		if next == "" {
			return names
		}
		cursor = next
		between()
	}
}

// messyNames are names in which order, case and separators matter.
func messyNames(random *rand.Rand, n int) []string {
	parts := []string{"a", "b", "a-", "a.", "a_", "A", "z", "0", "-", ".", "_", ":"}
	set := map[string]bool{}
	for len(set) < n {
		var s strings.Builder
		for range 1 + random.IntN(6) {
			s.WriteString(parts[random.IntN(len(parts))])
		}
		set[s.String()] = true
	}
	names := make([]string, 0, n)
	for name := range set {
		names = append(names, name)
	}
	return names
}

func TestPagingReturnsEachRowOnce(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		random := rand.New(rand.NewPCG(1, 2))
		var want []string
		for i, name := range messyNames(random, 60) {
			service := []string{"a", "a-b", "a.b", "a_b", "ab", "upstrand-proxy"}[random.IntN(6)]
			registrytest.Add(t, db, registrytest.Instance{ID: int64(i + 1), Service: service, IID: name, With: registrytest.Row{"zone": fmt.Sprint(random.IntN(2))}, Unseen: i%10 == 0})
			if service != "upstrand-proxy" {
				want = append(want, service+"/"+name)
			}
			registrytest.Insert(t, db, "topology_record", registrytest.Row{"record_key": "route/" + name, "version": 1 + i%3, "value": []byte("{}")})
			if i%7 == 0 { // gone again
				registrytest.Insert(t, db, "topology_record", registrytest.Row{"record_key": "route/" + name, "version": 4, "value": nil})
			}
			registrytest.Insert(t, db, "topology_version", registrytest.Row{"version": i*2 + 1, "digest": registrytest.Digest("a")})
			registrytest.Insert(t, db, "event", registrytest.Row{"seq": i*3 + 1, "kind": "joined", "happened_at": 5})
			registrytest.Insert(t, db, "rejected", registrytest.Row{"part": i % 3, "log_offset": i, "reason": "not_json", "received_at": random.IntN(9), "value": []byte{}})
		}
		h := newAPI(t, s, nil)
		added := 1000
		join := func() { // rows that come while someone pages must not disturb: these are far behind the reader
			if added++; added%9 != 0 {
				return
			}
			registrytest.Add(t, db, registrytest.Instance{ID: int64(added), Service: "0", IID: fmt.Sprint("new", added)})
			registrytest.Insert(t, db, "event", registrytest.Row{"seq": added, "kind": "joined", "happened_at": 5})
		}
		none := func() {}
		for _, limit := range []int{1, 7, 59, 60, 61, 1000} {
			once(t, limit, "instances", pages(t, "/v1/instances?", limit, func(target string) ([]wire.Instance, string) {
				l := read[wire.InstanceList](t, h, target)
				return l.Instances, l.NextCursor
			}, func(in wire.Instance) string { return in.Service + "/" + in.ID }, join), want, "0/new")
			once(t, limit, "topology", pages(t, "/v1/topology?version=5&", limit, func(target string) ([]wire.TopologyRecord, string) {
				l := read[wire.Topology](t, h, target)
				return l.Content, l.NextCursor
			}, func(r wire.TopologyRecord) string { return r.Key }, none), dbNames(t, db, `SELECT record_key FROM topology_record WHERE record_key NOT IN (SELECT record_key FROM topology_record WHERE version = 4)`), "-")
			once(t, limit, "versions", pages(t, "/v1/topology/versions?", limit, func(target string) ([]wire.TopologyVersion, string) {
				l := read[wire.TopologyVersionList](t, h, target)
				return l.Versions, l.NextCursor
			}, func(v wire.TopologyVersion) string { return fmt.Sprint(v.Version) }, none), dbNames(t, db, "SELECT version FROM topology_version"), "-")
			once(t, limit, "agents", pages(t, "/v1/agents?", limit, func(target string) ([]wire.Agent, string) {
				l := read[wire.AgentList](t, h, target)
				return l.Agents, l.NextCursor
			}, func(a wire.Agent) string { return a.Instance.ID }, none), dbNames(t, db, "SELECT iid FROM instance WHERE service = 'upstrand-proxy'"), "-")
			events := dbNames(t, db, "SELECT seq FROM event")
			once(t, limit, "events", pages(t, "/v1/events?", limit, func(target string) ([]wire.Event, string) {
				l := read[wire.EventList](t, h, target)
				return l.Events, l.NextCursor
			}, func(e wire.Event) string { return fmt.Sprint(e.Seq) }, join), events, "-")
			once(t, limit, "rejected", pages(t, "/v1/rejected?", limit, func(target string) ([]wire.Rejected, string) {
				l := read[wire.RejectedList](t, h, target)
				return l.Rejected, l.NextCursor
			}, func(r wire.Rejected) string { return fmt.Sprint(r.Partition, "@", r.Offset) }, none), dbNames(t, db, "SELECT "+rejectedName(db)+" FROM rejected"), "-")
		}
	})
}

func rejectedName(db *sqlx.DB) string {
	if db.DriverName() == "mysql" {
		return "CONCAT(part, '@', log_offset)"
	}
	return "part || '@' || log_offset"
}

func dbNames(t *testing.T, db *sqlx.DB, query string) []string {
	t.Helper()
	var names []string
	if err := db.Select(&names, query); err != nil {
		t.Fatal(err)
	}
	return names
}

// once fails unless got has each of want exactly once; names that begin with new may be there too, once.
func once(t *testing.T, limit int, what string, got, want []string, extra string) {
	t.Helper()
	seen := map[string]int{}
	for _, name := range got {
		name = strings.ReplaceAll(name, " ", "")
		if seen[name]++; seen[name] > 1 {
			t.Errorf("%s in pages of %d: %s came twice", what, limit, name)
		}
	}
	for _, name := range want {
		if seen[name] != 1 {
			t.Errorf("%s in pages of %d: %s did not come", what, limit, name)
		}
		delete(seen, name)
	}
	for name := range seen {
		if !strings.HasPrefix(name, extra) {
			t.Errorf("%s in pages of %d: %s came and is not there", what, limit, name)
		}
	}
}

func TestPagesAreInOrder(t *testing.T) {
	h := fleetAPI(t)
	var names []string
	for _, in := range read[wire.InstanceList](t, h, "/v1/instances").Instances {
		names = append(names, in.Service+"/"+in.ID)
	}
	if !slices.IsSorted(names) || len(names) != 8 {
		t.Error(names)
	}
}
