package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"

	"github.com/upstrand/upstrand/registry/api"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/registrytest"
	"github.com/upstrand/upstrand/registry/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type sink struct{ keys []string }

func (l *sink) Publish(_ context.Context, messages []api.Message) []error {
	for _, m := range messages {
		l.keys = append(l.keys, string(m.Key))
	}
	return nil
}

// fleet is a client of a registry that has the fleet, under a path of its own, and what the server last answered.
func fleet(t *testing.T) (*client.Client, *sqlx.DB, *[]byte) {
	t.Helper()
	s, db := registrytest.SQLite(t)
	registrytest.Fleet(t, db)
	h, err := api.New(api.Config{Store: s, Publisher: &sink{}, Now: registrytest.Now, EventPoll: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	last := new([]byte)
	server := httptest.NewServer(http.StripPrefix("/registry", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		*last = rec.Body.Bytes()
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(*last)
	})))
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Base: server.URL + "/registry/", HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return c, db, last
}

func ptr[T any](v T) *T { return &v }

func TestNothingIsLostOnTheWay(t *testing.T) {
	c, _, last := fleet(t)
	ctx := t.Context()
	for name, call := range map[string]func() (any, error){
		"services": func() (any, error) {
			return c.Services(ctx, client.ServiceQuery{Prefix: "o", State: "serving", Page: client.Page{Limit: 5}})
		},
		"service":   func() (any, error) { return c.Service(ctx, "orders") },
		"instances": func() (any, error) { return c.Instances(ctx, client.InstanceQuery{}) },
		"of service": func() (any, error) {
			return c.ServiceInstances(ctx, "orders", client.InstanceQuery{Page: client.Page{Limit: 3}})
		},
		"instance": func() (any, error) { return c.Instance(ctx, "orders", "a1") },
		"topology": func() (any, error) { return c.Topology(ctx, client.TopologyQuery{Version: 41, Prefix: "service/"}) },
		"versions": func() (any, error) { return c.Versions(ctx, client.Page{Limit: 2}) },
		"agents":   func() (any, error) { return c.Agents(ctx, client.Page{}) },
		"events": func() (any, error) {
			return c.Events(ctx, client.EventQuery{Service: "orders", Since: registrytest.Now().Add(-time.Hour)})
		},
		"streams": func() (any, error) { return c.Streams(ctx) },
		"rejected": func() (any, error) {
			return c.Rejected(ctx, client.RejectedQuery{Reasons: []string{"not_json"}, Partition: ptr(int32(1))})
		},
		"beats": func() (any, error) {
			return c.SendBeats(ctx, json.RawMessage(`{"service":"s","id":"a","ip":"10.0.0.1","port":1}`), json.RawMessage(`{"service":"s","id":"b","port":1}`))
		},
	} {
		out, err := call()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if json.Unmarshal(*last, &want) != nil || json.Unmarshal(again, &got) != nil {
			t.Fatalf("%s: %s", name, *last)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(again) < 20 {
			t.Errorf("%s (-server +client):\n%s", name, diff)
		}
	}
}

func TestFiltersReachTheServer(t *testing.T) {
	c, _, _ := fleet(t)
	for name, q := range map[string]struct {
		query client.InstanceQuery
		want  string
	}{
		"zone":       {client.InstanceQuery{Zone: ptr("b")}, "a2 a4 a5"},
		"no zone":    {client.InstanceQuery{Zone: ptr(""), Services: []string{"orders"}}, "a6"},
		"no version": {client.InstanceQuery{Version: ptr("")}, "a6 a7"},
		"tags":       {client.InstanceQuery{Tags: []string{"canary", "blue"}}, "a1"},
		"tag":        {client.InstanceQuery{Tags: []string{"canary"}}, "a1 a2"},
		"half a tag": {client.InstanceQuery{Tags: []string{"canar"}}, ""},
		"status":     {client.InstanceQuery{Status: []string{"draining", "leaving"}}, "a2 a5"},
		"liveness":   {client.InstanceQuery{Liveness: []string{"stale"}, Services: []string{"billing", "orders"}}, "b1 a4"},
		"agents":     {client.InstanceQuery{Services: []string{"upstrand-proxy"}}, "p1 p2 p3 p4 p5"},
	} {
		var ids []string
		for in, err := range c.AllInstances(t.Context(), q.query) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ids = append(ids, in.ID)
		}
		if got := strings.Join(ids, " "); got != q.want {
			t.Errorf("%s: %s, want %s", name, got, q.want)
		}
	}
}

func TestPagesAreJoined(t *testing.T) {
	c, _, _ := fleet(t)
	small := client.Page{Limit: 2}
	var names []string
	for s, err := range c.AllServices(t.Context(), client.ServiceQuery{Page: small}) {
		names = append(names, fmt.Sprint(s.Name, err))
	}
	for in, err := range c.AllInstances(t.Context(), client.InstanceQuery{Page: small}) {
		names = append(names, fmt.Sprint(in.ID, err))
	}
	for v, err := range c.AllVersions(t.Context(), small) {
		names = append(names, fmt.Sprint(v.Version, err))
	}
	for a, err := range c.AllAgents(t.Context(), small) {
		names = append(names, fmt.Sprint(a.Instance.ID, err))
	}
	for e, err := range c.AllEvents(t.Context(), client.EventQuery{Page: small}) {
		names = append(names, fmt.Sprint(e.Seq, err))
	}
	for r, err := range c.AllRejected(t.Context(), client.RejectedQuery{Page: small}) {
		names = append(names, fmt.Sprint(r.Offset, err))
	}
	topology, err := c.WholeTopology(t.Context(), client.TopologyQuery{Page: small})
	names = append(names, fmt.Sprint(len(topology.Content), topology.NextCursor, err))
	want := "billing orders web b1 a1 a2 a3 a4 a5 a6 a7 43 41 40 p1 p2 p3 p4 p5 107 106 105 104 103 102 101 6 5 4 17 5"
	got := strings.Join(strings.Fields(strings.ReplaceAll(strings.Join(names, " "), "<nil>", "")), " ")
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestAWholeTopologyIsOfOneVersion(t *testing.T) {
	c, db, _ := fleet(t)
	q := client.TopologyQuery{Page: client.Page{Limit: 2}}
	first, err := c.Topology(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	registrytest.Insert(t, db, "topology_version", registrytest.Row{"version": 44, "digest": registrytest.Digest("d")})
	registrytest.Insert(t, db, "topology_record", registrytest.Row{"record_key": "service/orders", "version": 44, "value": []byte(`{}`)})
	q.Cursor = first.NextCursor
	next, err := c.Topology(t.Context(), q)
	if err != nil || next.Version != 43 || strings.Contains(fmt.Sprint(next.Content), "{}") {
		t.Errorf("the second page is of version %d: %v", next.Version, err)
	}
}

func TestErrorsSayWhatTheServerSays(t *testing.T) {
	c, _, _ := fleet(t)
	_, err := c.Service(t.Context(), "ordesr")
	if !client.IsNotFound(err) || !strings.Contains(err.Error(), "did you mean orders?") {
		t.Error(err)
	}
	_, err = c.Instances(t.Context(), client.InstanceQuery{Page: client.Page{Limit: 5000}})
	want := "registry: a parameter can't be used: query.limit: is too large, given 5000 (allowed: a whole number from 1 to 1000) (400)"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	answer, err := c.SendBeats(t.Context(), json.RawMessage(`{"service":"s","id":"a","ip":"10.0.0.1","port":1}`), json.RawMessage(`{"service":"s"}`))
	var failed *client.Error
	if !errors.As(err, &failed) || failed.Status != 422 || answer.Accepted != 1 || answer.Invalid != 1 || answer.Beats[1].Reason != "missing_field" {
		t.Errorf("%+v %v", answer, err)
	}
}

func TestWhatIsNoRegistryIsToldSo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if strings.HasSuffix(r.URL.Path, "/broken") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"name":`)
			return
		}
		w.WriteHeader(404)
		_, _ = io.WriteString(w, "<html>nothing here</html>")
	}))
	defer server.Close()
	c, err := client.New(client.Config{Base: server.URL, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Service(t.Context(), "a/b?c"); err == nil || client.IsNotFound(err) || !strings.Contains(err.Error(), "/v1/services/a%2Fb%3Fc answered 404") || !strings.Contains(err.Error(), "<html>") {
		t.Error(err)
	}
	if _, err := c.Service(t.Context(), "broken"); err == nil {
		t.Error("half an answer was taken")
	}
	server.Close()
	if _, err := c.Streams(t.Context()); err == nil {
		t.Error("no server, no error")
	}
}

func TestTheAddressIsChecked(t *testing.T) {
	for _, base := range []string{"", "127.0.0.1:8090", "ftp://x", "http://", "http://x?y", "http://x#y", "http://[::1", "://"} {
		if _, err := client.New(client.Config{Base: base}); err == nil {
			t.Errorf("%q was accepted", base)
		}
	}
}

func TestFollowingGetsEachEventOnceOverFailures(t *testing.T) {
	c, db, _ := fleet(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []int64
	for e, err := range c.Follow(ctx, client.EventQuery{After: ptr(int64(104)), Page: client.Page{Limit: 2}}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Seq); len(got) == 3 { // the last that was there
			registrytest.Insert(t, db, "event", registrytest.Row{"seq": 108, "kind": "joined"})
		}
		if len(got) == 4 {
			break
		}
	}
	if fmt.Sprint(got) != "[105 106 107 108]" {
		t.Error(got)
	}
}

func TestFollowingFromNowLeavesOutWhatWas(t *testing.T) {
	calls := make(chan string, 10)
	fail := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls <- r.URL.RawQuery
		if after := r.URL.Query().Get("after"); after != "" && fail {
			fail = false
			w.WriteHeader(502)
			return
		} else if after != "" {
			_ = json.NewEncoder(header(w)).Encode(wire.EventList{Events: []wire.Event{{Seq: 108}}, LastSeq: 108})
			return
		}
		_ = json.NewEncoder(header(w)).Encode(wire.EventList{Events: []wire.Event{{Seq: 107}}, LastSeq: 107})
	}))
	defer server.Close()
	c, err := client.New(client.Config{Base: server.URL, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range c.Follow(t.Context(), client.EventQuery{Wait: time.Second}) {
		got = append(got, fmt.Sprint(e.Seq, err != nil))
		if e.Seq != 0 {
			break
		}
	}
	if fmt.Sprint(got) != "[0 true 108 false]" {
		t.Error(got)
	}
	if first, second, third := <-calls, <-calls, <-calls; first != "limit=1" || second != "after=107&wait_s=1" || third != second {
		t.Error(first, second, third)
	}
}

func header(w http.ResponseWriter) http.ResponseWriter {
	w.Header().Set("Content-Type", "application/json")
	return w
}
