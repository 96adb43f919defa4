package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/registrytest"
	"github.com/upstrand/upstrand/registry/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files in testdata anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newAPI is an API over a store, at the fleet's moment.
func newAPI(t testing.TB, store Reader, change func(*Config)) http.Handler {
	t.Helper()
	cfg := Config{Store: store, Now: registrytest.Now, Registerer: prometheus.NewRegistry()}
	if change != nil {
		change(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func fleetAPI(t testing.TB) http.Handler {
	t.Helper()
	s, db := registrytest.SQLite(t)
	registrytest.Fleet(t, db)
	return newAPI(t, s, nil)
}

// call makes a request and holds the answer against the OpenAPI document of the same handler.
func call(t testing.TB, h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	checkAnswer(t, h, r, w)
	return w
}

func get(t testing.TB, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	return call(t, h, httptest.NewRequest(http.MethodGet, target, nil))
}

// read gets target, which must succeed, into a T.
func read[T any](t testing.TB, h http.Handler, target string) T {
	t.Helper()
	w := get(t, h, target)
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %s", target, w.Code, w.Body)
	}
	return decode[T](t, w)
}

func decode[T any](t testing.TB, w *httptest.ResponseRecorder) T {
	t.Helper()
	var out T
	strict := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&out); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return out
}

// golden compares text with a file of testdata.
func golden(t testing.TB, name string, text []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -rewrite makes it)", err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

func TestAnswersAreAsWrittenDown(t *testing.T) {
	h := fleetAPI(t)
	for name, target := range map[string]string{
		"services":               "/v1/services",
		"services_empty":         "/v1/services?state=empty",
		"service":                "/v1/services/orders",
		"service_instances":      "/v1/services/orders/instances?limit=2",
		"instances_filtered":     "/v1/instances?zone=b&version=1.4.0&tag=canary&status=draining,up&liveness=live",
		"instance":               "/v1/instances/orders/a1",
		"instance_unproven":      "/v1/instances/orders/a3",
		"instance_ipv6_no_clock": "/v1/instances/orders/a6",
		"instance_lost_stream":   "/v1/instances/orders/a7",
		"topology":               "/v1/topology",
		"topology_old":           "/v1/topology?version=40&prefix=up",
		"topology_versions":      "/v1/topology/versions?limit=2",
		"agents":                 "/v1/agents",
		"events":                 "/v1/events?limit=3",
		"events_after":           "/v1/events?after=103&service=orders",
		"streams":                "/v1/streams",
		"rejected":               "/v1/rejected",
		"problem_unknown":        "/v1/services/ordesr",
	} {
		t.Run(name, func(t *testing.T) {
			w := get(t, h, target)
			var text bytes.Buffer
			text.WriteString("GET " + target + "\n" + http.StatusText(w.Code) + ", " + w.Header().Get("Content-Type") + "\n\n")
			if err := json.Indent(&text, w.Body.Bytes(), "", "  "); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", text.Bytes())
		})
	}
}

func TestTheSameAnswersComeFromMySQL(t *testing.T) {
	s, db := registrytest.MySQL(t)
	registrytest.Fleet(t, db)
	mine, other := fleetAPI(t), newAPI(t, s, nil)
	for _, target := range []string{
		"/v1/services", "/v1/services?prefix=or&limit=1", "/v1/services/orders", "/v1/services/web", "/v1/instances?limit=1000",
		"/v1/instances?tag=canary", "/v1/instances?tag=Canary", "/v1/instances?zone=", "/v1/services/upstrand-proxy/instances",
		"/v1/topology", "/v1/topology?version=40", "/v1/topology?version=41&limit=2", "/v1/topology/versions", "/v1/agents", "/v1/events",
		"/v1/events?since=45m&kind=stale,left", "/v1/streams", "/v1/rejected", "/v1/rejected?reason=not_json&partition=1&limit=1",
	} {
		want, got := get(t, mine, target), get(t, other, target)
		if diff := cmp.Diff(want.Body.String(), got.Body.String()); diff != "" {
			t.Errorf("%s: SQLite and MySQL differ (-sqlite +mysql):\n%s", target, diff)
		}
	}
}

func TestWhatCanNotBeUsedIsAnErrorThatSaysWhereWhatAndWhatIsAllowed(t *testing.T) {
	h := fleetAPI(t)
	long := strings.Repeat("x", 65)
	for _, c := range []struct {
		target, location, message, allowed string
		status                             int
	}{
		{"/v1/services?zone=a", "query.zone", "is not a parameter of /v1/services", "prefix, state, limit, cursor", 400},
		{"/v1/streams?x=1", "query.x", "is not a parameter", "no parameters here", 400},
		{"/v1/instances/orders/a1?full=1", "query.full", "is not a parameter", "no parameters here", 400},
		{"/v1/instances?limit=0", "query.limit", "is too small", "a whole number from 1 to 1000", 400},
		{"/v1/instances?limit=1001", "query.limit", "is too large", "a whole number from 1 to 1000", 400},
		{"/v1/instances?limit=ten", "query.limit", "is not a whole number", "a whole number from 1 to 1000", 400},
		{"/v1/instances?limit=99999999999999999999", "query.limit", "is not a whole number", "a whole number from 1 to 1000", 400},
		{"/v1/instances?limit=", "query.limit", "is empty", "a whole number from 1 to 1000", 400},
		{"/v1/instances?limit=5&limit=6", "query.limit", "is given more than once", "a whole number from 1 to 1000", 400},
		{"/v1/instances?liveness=live,dead", "query.liveness", "is not known", "each one of live, unproven, stale, left, superseded", 400},
		{"/v1/instances?status=UP", "query.status", "is not known", "each one of up, draining, leaving", 400},
		{"/v1/instances?service=Orders", "query.service", "has characters", "a service's name", 400},
		{"/v1/instances?service=", "query.service", "is empty", "a service's name", 400},
		{"/v1/instances?tag=a,,b", "query.tag", "is empty", "text of up to 64 characters", 400},
		{"/v1/instances?zone=" + long, "query.zone", "is too long", "text of up to 64 characters", 400},
		{"/v1/instances?zone=%ff", "query.zone", "is not UTF-8 text", "text of up to 64 characters", 400},
		{"/v1/instances?zone=%zz", "query", "can't be parsed", "name=value pairs", 400},
		{"/v1/instances?cursor=abc", "query.cursor", "is not a cursor of this list", "next_cursor of an earlier answer", 400},
		{"/v1/instances?cursor=" + encodeCursor(cursorServices, "orders"), "query.cursor", "is not a cursor of this list", "next_cursor", 400},
		{"/v1/services?cursor=!", "query.cursor", "is not a cursor of this list", "next_cursor", 400},
		{"/v1/agents?cursor=!", "query.cursor", "is not a cursor of this list", "next_cursor", 400},
		{"/v1/topology?cursor=!", "query.cursor", "is not a cursor of this list", "next_cursor", 400},
		{"/v1/topology?cursor=" + encodeCursor(cursorTopology, "x", "y"), "query.cursor", "is not a cursor of this list", "next_cursor", 400},
		{"/v1/topology?version=40&cursor=" + encodeCursor(cursorTopology, "43", "y"), "query.version", "is another version than the cursor's", "43, or no version beside a cursor", 400},
		{"/v1/topology/versions?cursor=!", "query.cursor", "is not a cursor of this list", "next_cursor", 400},
		{"/v1/events?cursor=!", "query.cursor", "is not a cursor of this list", "next_cursor", 400},
		{"/v1/rejected?cursor=" + encodeNumbers(cursorRejected, 1, 1<<40, 1), "query.cursor", "is not a cursor of this list", "next_cursor", 400},
		{"/v1/events?since=yesterday", "query.since", "is neither a time nor how long ago", "a time that is past, such as", 400},
		{"/v1/events?since=-5m", "query.since", "is neither a time nor how long ago", "a time that is past, such as", 400},
		{"/v1/events?after=-1", "query.after", "is too small", "a whole number from 0", 400},
		{"/v1/events?wait_s=5", "query.wait_s", "is given without after", "wait_s beside after", 400},
		{"/v1/events?after=1&wait_s=31", "query.wait_s", "is too large", "a number from 0 to 30", 400},
		{"/v1/events?after=1&wait_s=NaN", "query.wait_s", "is not a number", "a number from 0 to 30", 400},
		{"/v1/events?after=1&cursor=" + encodeNumbers(cursorEvents, 5), "query.cursor", "is given beside after", "one of the two", 400},
		{"/v1/events?kind=Joined", "query.kind", "is not known", "each one of joined, restarted, changed,", 400},
		{"/v1/events?kind=joined,nope", "query.kind", "is not known", "publishing_resumed", 400},
		{"/v1/events?since=2026-11-29T10:02:00Z", "query.since", "is in the future", "a time that is past, such as", 400},
		{"/v1/events?limit=-1", "query.limit", "is too small", "a whole number from 1 to 1000", 400},
		{"/v1/rejected?reason=nonsense", "query.reason", "is not known", "bad_stale_after, bad_pulse, invalid, decoder_panic, unreadable, not_applied", 400},
		{"/v1/instances?service=nope", "query.service", "not found", "", 404},
		{"/v1/services?state=gone", "query.state", "is not known", "one of serving, draining, empty", 400},
		{"/v1/rejected?partition=-1", "query.partition", "is too small", "a whole number from 0 to 2147483647", 400},
		{"/v1/topology?version=0", "query.version", "is too small", "a whole number from 1", 400},
		{"/v1/services/Orders", "path.service", "has characters", "a service's name: up to 64 of", 400},
		{"/v1/instances/orders/a%20b", "path.id", "has characters", "an instance's id: 1 to 64 of", 400},
		{"/v1/services/nope", "path.service", "not found", "", 404},
		{"/v1/services/nope/instances", "path.service", "not found", "", 404},
		{"/v1/instances/nope/a1", "path.service", "not found", "", 404},
		{"/v1/instances/orders/zz", "path.id", "not found", "", 404},
		{"/v1/instances/upstrand-proxy/zz", "path.id", "not found", "", 404},
		{"/v1/services/upstrand-proxy", "path.service", "not found", "", 404},
		{"/v1/topology?version=42", "query.version", "not found", "", 404},
		{"/v1/service", "path", "is no path of the API", "/v1/agents, /v1/beats", 404},
		{"/", "path", "is no path of the API", "/v1/agents, /v1/beats", 404},
	} {
		t.Run(c.target, func(t *testing.T) {
			w := get(t, h, c.target)
			p := decode[wire.Problem](t, w)
			if w.Code != c.status || p.Status != c.status || p.Title != http.StatusText(c.status) || w.Header().Get("Content-Type") != wire.ProblemType {
				t.Errorf("answered %d as %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
			}
			if len(p.Errors) != 1 || p.Errors[0].Location != c.location ||
				!strings.Contains(p.Errors[0].Message, c.message) || !strings.Contains(p.Errors[0].Allowed, c.allowed) {
				t.Errorf("errors: %+v", p.Errors)
			}
		})
	}
}

func TestAllBadParametersAreToldAtOnce(t *testing.T) {
	p := decode[wire.Problem](t, get(t, fleetAPI(t), "/v1/instances?limit=0&colour=red&liveness=dead,gone&size=1"))
	var where []string
	for _, e := range p.Errors {
		where = append(where, e.Location+"="+e.Value)
	}
	want := []string{"query.colour=red", "query.size=1", "query.liveness=dead", "query.liveness=gone", "query.limit=0"}
	if diff := cmp.Diff(want, where); diff != "" {
		t.Error(diff)
	}
	if p.Detail != "5 parameters can't be used" {
		t.Error(p.Detail)
	}
}

func TestUnknownNamesComeWithAHint(t *testing.T) {
	h := fleetAPI(t)
	for target, want := range map[string]string{
		"/v1/services/ordesr":                    `there is no service "ordesr"; did you mean orders? GET /v1/services lists all`,
		"/v1/instances/bilings/b1":               `there is no service "bilings"; did you mean billing? GET /v1/services lists all`,
		"/v1/services/xyz":                       `there is no service "xyz"; GET /v1/services lists all`,
		"/v1/services/upstrand-proxy":            `"upstrand-proxy" is the name of a part of Upstrand, not of a service; GET /v1/agents lists those`,
		"/v1/instances/orders/a99":               `service orders has no instance "a99"; GET /v1/services/orders/instances lists those it has`,
		"/v1/topology?version=7":                 `topology version 7 is not kept, or never was; GET /v1/topology/versions lists those that are`,
		"/v1/instances?service=orders,bilings,x": `there is no service "bilings"; did you mean billing? GET /v1/services lists all; there is no service "x"; GET /v1/services lists all`,
		"/v1/services/ordesr/instances":          `there is no service "ordesr"; did you mean orders? GET /v1/services lists all`,
	} {
		if got := decode[wire.Problem](t, get(t, h, target)).Detail; got != want {
			t.Errorf("%s: %s\nwant %s", target, got, want)
		}
	}
}

func TestAnotherMethodIsToldWhichAreAllowed(t *testing.T) {
	h := fleetAPI(t)
	for _, c := range []struct{ method, target, allow string }{
		{"DELETE", "/v1/services/orders", "GET, HEAD"},
		{"POST", "/v1/events", "GET, HEAD"},
		{"GET", "/v1/beats", "POST"},
		{"PUT", "/openapi.json", "GET, HEAD"},
	} {
		w := call(t, h, httptest.NewRequest(c.method, c.target, nil))
		if w.Code != 405 || w.Header().Get("Allow") != c.allow || decode[wire.Problem](t, w).Errors[0].Allowed != c.allow {
			t.Errorf("%s %s: %d, Allow %q: %s", c.method, c.target, w.Code, w.Header().Get("Allow"), w.Body)
		}
	}
}

// brokenStore fails every read.
type brokenStore struct{ Reader }

var errBroken = errors.New("dial tcp 10.9.9.9:3306: password of user upstrand refused")

func (brokenStore) ListServices(context.Context, registry.ServiceFilter) ([]registry.ServiceView, error) {
	return nil, errBroken
}
func (brokenStore) LastEventSeq(context.Context) (int64, error) { return 0, errBroken }

func TestADatabaseThatIsAwayIs503WithoutItsSecrets(t *testing.T) {
	h := newAPI(t, brokenStore{}, nil)
	for _, target := range []string{"/v1/services", "/v1/events"} {
		w := get(t, h, target)
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "10.9.9.9") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}

func TestAPanicIs500AndCounted(t *testing.T) {
	metrics := prometheus.NewRegistry()
	h := newAPI(t, brokenStore{}, func(c *Config) { c.Registerer = metrics })
	w := get(t, h, "/v1/streams") // a nil method
	if w.Code != 500 || decode[wire.Problem](t, w).Status != 500 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	wantMetric(t, metrics, "upstrand_api_requests_total", 1, "route", "/v1/streams", "method", "GET", "status", "500")
}

func TestRequestsAreCountedByRouteAndStatus(t *testing.T) {
	s, db := registrytest.SQLite(t)
	registrytest.Fleet(t, db)
	metrics := prometheus.NewRegistry()
	h := newAPI(t, s, func(c *Config) { c.Registerer = metrics })
	for _, target := range []string{"/v1/services/orders", "/v1/services/billing", "/v1/services/zzz", "/v1/whatever", "/v1/services?limit=0"} {
		get(t, h, target)
	}
	call(t, h, httptest.NewRequest("PATCH", "/v1/services/orders", nil))
	const name = "upstrand_api_requests_total"
	wantMetric(t, metrics, name, 2, "route", "/v1/services/{service}", "method", "GET", "status", "200")
	wantMetric(t, metrics, name, 1, "route", "/v1/services/{service}", "method", "GET", "status", "404")
	wantMetric(t, metrics, name, 1, "route", "/v1/services", "method", "GET", "status", "400")
	wantMetric(t, metrics, name, 1, "route", "none", "method", "GET", "status", "404")
	wantMetric(t, metrics, name, 1, "route", "none", "method", "other", "status", "405")
}

func wantMetric(t *testing.T, metrics *prometheus.Registry, name string, want float64, labels ...string) {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got float64
	for _, f := range families {
		for _, m := range f.GetMetric() {
			match := f.GetName() == name
			for i := 0; match && i+1 < len(labels); i += 2 {
				found := false
				for _, l := range m.GetLabel() {
					found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
				}
				match = found
			}
			if match {
				got += m.GetCounter().GetValue()
			}
		}
	}
	if got != want {
		t.Errorf("%s%v is %v, want %v", name, labels, got, want)
	}
}

func TestTheConfigurationIsChecked(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("a Config without a Store was accepted")
	}
	metrics := prometheus.NewRegistry()
	newAPI(t, brokenStore{}, func(c *Config) { c.Registerer = metrics })
	if _, err := New(Config{Store: brokenStore{}, Registerer: metrics}); err == nil {
		t.Error("the same metrics twice were accepted")
	}
}
