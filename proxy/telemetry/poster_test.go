package telemetry

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/upstrand/upstrand/proxy/forward"
)

// collector is a receiver of OTLP over HTTP that answers with statuses in turn, then 200.
type collector struct {
	mu       sync.Mutex
	statuses []int
	posts    int
	spans    []*tracepb.Span
	resource map[string]string
	header   http.Header
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts++
	c.header = r.Header.Clone()
	if len(c.statuses) > 0 {
		status := c.statuses[0]
		c.statuses = c.statuses[1:]
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		return
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b, err := io.ReadAll(z)
	var data tracepb.TracesData
	if err != nil || proto.Unmarshal(b, &data) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, of := range data.ResourceSpans {
		c.resource = map[string]string{}
		for _, a := range of.Resource.Attributes {
			c.resource[a.Key] = a.Value.GetStringValue()
		}
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

func TestSpansAreDelivered(t *testing.T) {
	c := &collector{}
	s := httptest.NewServer(c)
	defer s.Close()
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=lab")
	tracer, err := New(Config{Endpoint: s.URL + "/v1/traces", Header: map[string]string{"Api-Key": "k"}, Service: "edge", Version: "1.2", Sample: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		span := tracer.Start(&forward.Request{Method: []byte("PURGE"), Target: []byte("/\xff"), Authority: []byte("[::1]:8080")}, time.Now().UnixNano())
		span.End(forward.SpanEnd{At: time.Now().UnixNano(), Status: 502, Route: "/", Cause: "no_live"})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := tracer.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if len(c.spans) != 3 || c.resource["service.name"] != "edge" || c.resource["service.version"] != "1.2" || c.resource["deployment.environment.name"] != "lab" || c.header.Get("Api-Key") != "k" {
		t.Fatalf("%d spans, resource %v, header %v", len(c.spans), c.resource, c.header)
	}
	if got := c.spans[0]; got.Name != "HTTP /" || got.Kind != tracepb.Span_SPAN_KIND_SERVER || got.Status.Code != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("%v", got)
	}
}

// posted is a transport that hands requests to a handler, in the time of a bubble.
type posted struct{ http.Handler }

func (p posted) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestCollectorThatIsBusy(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []int
		posts    int
		took     time.Duration
		fails    bool
	}{
		"at once":         {nil, 1, 0, false},
		"later":           {[]int{503, 429}, 3, 14 * time.Second, false}, // Retry-After is longer than our own wait
		"never":           {[]int{503, 503, 503, 503, 503}, tries, 21 * time.Second, true},
		"not worth while": {[]int{400}, 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &collector{statuses: c.statuses}
				p, err := newPoster(Config{Endpoint: "http://collector/v1/traces", Client: &http.Client{Transport: posted{to}}})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err = p.UploadTraces(t.Context(), []*tracepb.ResourceSpans{{Resource: &resourcepb.Resource{}}})
				if (err != nil) != c.fails || to.posts != c.posts || time.Since(began) != c.took {
					t.Errorf("%v after %d posts and %v", err, to.posts, time.Since(began))
				}
			})
		})
	}
}

func TestEndpoint(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"":                         {},
		"http://c:4318/v1/traces":  {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"},
		"https://c/otlp/v1/traces": {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c/otlp"},
		"http://t/x":               {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/x"},
	} {
		if got := Endpoint(func(name string) string { return env[name] }); got != want {
			t.Errorf("%v: %q", env, got)
		}
	}
	env := map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=1, b=x%20y", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=2"}
	if got, err := Header(func(name string) string { return env[name] }); err != nil || fmt.Sprint(got) != "map[a:2 b:x y]" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Header(func(string) string { return "secret" }); err == nil {
		t.Error("a header without a value")
	}
	for _, bad := range []string{"", "collector:4318", "unix:///x", "http://"} {
		if _, err := New(Config{Endpoint: bad, Sample: 1}); err == nil {
			t.Errorf("endpoint %q", bad)
		}
	}
	if _, err := New(Config{Endpoint: "http://c", Sample: 1.5}); err == nil {
		t.Error("a sample of 1.5")
	}
}
