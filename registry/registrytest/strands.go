package registrytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
)

// Strands writes topology version 50 over the fleet's: the derived upstrand orders over two zones, a declared one, canary,
// with a blacklist, and a proxy that has one of its upstreams on it.
func Strands(tb testing.TB, db *sqlx.DB) {
	tb.Helper()
	Insert(tb, db, "topology_version", Row{"version": 50, "epoch": 3, "digest": Digest("d"), "records": 11, "changed": 9, "cause": "canary declared", "revision": 9, "created_at": Before(time.Minute)})
	for key, value := range map[string]string{
		"service/orders": `{"name":"orders","instances":[` +
			`{"id":"a1","order":1,"addr":"10.0.0.1:8080","weight":4,"zone":"a","version":"1.4.0"},` +
			`{"id":"a2","order":2,"addr":"10.0.0.2:8080","zone":"b","version":"1.4.0","drain":true},` +
			`{"id":"a3","order":3,"addr":"10.0.0.3:8080","zone":"b","unproven":true}]}`,
		"upstream/orders@a": `{"name":"orders@a","origin":"derived","directives":[["discover","orders","zone=a"]]}`,
		"upstream/orders@b": `{"name":"orders@b","origin":"derived","directives":[["discover","orders","zone=b"]]}`,
		"upstrand/orders": `{"name":"orders","origin":"derived","directives":[["upstream","orders@a"],["upstream","orders@b"],["order","per_request"],` +
			`["next_upstream_statuses","error","timeout"]],"own_zone_first":true}`,
		"upstream/v2": `{"name":"v2","origin":"declared","directives":[["discover","orders","version=1.4.0"],["server","v2.example:8080","backup"]]}`,
		"upstrand/canary": `{"name":"canary","origin":"declared","rank":1,"directives":[["upstream","v2","blacklist_interval=60s"],["upstream","orders","backup"],["upstream","gone"],` +
			`["next_upstream_statuses","5xx"],["next_upstream_timeout","20s"],["intercept_statuses","503","/sorry"]]}`,
		"route/shop.example/basket": `{"host":"shop.example","path":"/basket","origin":"declared","upstrand":"canary"}`,
	} {
		Insert(tb, db, "topology_record", Row{"record_key": key, "version": 50, "value": []byte(value)})
	}
	until := Now().Add(42 * time.Second).Unix()
	report := fmt.Sprintf(`{"topology_version":"50","blacklisted":"[[\"canary\",\"v2\",%d],[\"canary\",\"orders\",%d],[\"canary\"],7,[\"other\",\"v2\",%d]]"}`, until, Now().Unix(), until)
	agent := Instance{ID: 60, Service: "upstrand-proxy", IID: "edge-1-8080", With: Row{"zone": "a"}}
	Add(tb, db, agent)
	Insert(tb, db, "agent_report", Row{"id": 60, "report": report, "received_at": Before(3 * time.Second)})
}
