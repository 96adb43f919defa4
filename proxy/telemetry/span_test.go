package telemetry

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy"
)

// followed is a proxy in front of an instance that is dead and one that tells the fields of a trace context it got.
type followed struct {
	t        *testing.T
	url      string
	spans    *tracetest.InMemoryExporter
	shutdown func()
}

func follow(t *testing.T, sample float64) *followed {
	t.Helper()
	f := &followed{t: t, spans: tracetest.NewInMemoryExporter()}
	tracer, err := New(Config{Service: "test", Sample: sample, Exporter: f.spans})
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Config{Tracer: tracer, Logger: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/shop/no" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, r.Header.Get("Traceparent")+" "+strings.Join(r.Header.Values("Tracestate"), ","))
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = dead.Close()
	if err := p.Apply(&topology.Topology{Version: 1, Epoch: 1, At: time.Now(), Config: &topology.Config{
		Services: []topology.Service{{Name: "shop", Instances: []topology.Instance{
			{ID: "dead", Addr: dead.Addr().String(), Incarnation: 1, Order: 1}, {ID: "good", Addr: back.Listener.Addr().String(), Incarnation: 1, Order: 2},
		}}},
		Upstreams: []topology.Upstream{{Name: "shop", Origin: topology.Derived, Directives: []topology.Directive{{"discover", "shop"}}}},
		Routes:    []topology.Route{{Path: "/shop", Upstream: "shop"}},
	}}); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	f.url = "http://" + l.Addr().String()
	f.shutdown = func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.Shutdown(ctx)
		<-served
		back.Close()
		http.DefaultClient.CloseIdleConnections()
	}
	return f
}

// get asks, and gives what the instance saw.
func (f *followed) get(path string, fields ...string) string {
	f.t.Helper()
	r, err := http.NewRequest(http.MethodGet, f.url+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// all ends the proxy and gives the spans of requests, in order, each behind those of its attempts.
func (f *followed) all() tracetest.SpanStubs {
	f.shutdown()
	return f.spans.GetSpans()
}

const (
	parentTrace = "0af7651916cd43dd8448eb211c80319c"
	parentSpan  = "b7ad6b7169203331"
)

func TestSpansOfARequest(t *testing.T) {
	f := follow(t, 1)
	saw := f.get("/shop/a?secret=1", "User-Agent", "tester", "Traceparent", "00-"+parentTrace+"-"+parentSpan+"-01", "Tracestate", "a=1", "Tracestate", "b=2")
	spans := f.all()
	if len(spans) != 3 {
		t.Fatalf("%d spans: %+v", len(spans), spans)
	}
	dead, good, server := spans[0], spans[1], spans[2]
	if server.SpanKind != trace.SpanKindServer || server.Parent.SpanID().String() != parentSpan || server.SpanContext.TraceID().String() != parentTrace {
		t.Errorf("the request's span: %+v", server)
	}
	for _, s := range []tracetest.SpanStub{dead, good} {
		if s.SpanKind != trace.SpanKindClient || s.Parent.SpanID() != server.SpanContext.SpanID() || s.StartTime.Before(server.StartTime) || s.EndTime.After(server.EndTime) || s.EndTime.Before(s.StartTime) {
			t.Errorf("an attempt's span: %+v", s)
		}
	}
	if want := "00-" + parentTrace + "-" + good.SpanContext.SpanID().String() + "-01 a=1,b=2"; saw != want {
		t.Errorf("the instance saw %q, want %q", saw, want)
	}
	if dead.Status.Code != codes.Error || good.Status.Code != codes.Unset || server.Status.Code != codes.Unset {
		t.Errorf("status: %v, %v, %v", dead.Status, good.Status, server.Status)
	}
	has(t, server, "http.request.method", "GET", "url.path", "/shop/a", "url.query", "secret=1", "url.scheme", "http", "http.response.status_code", "200", "user_agent.original", "tester",
		"server.address", "127.0.0.1", "client.address", "127.0.0.1", "network.protocol.version", "1.1", "upstrand.upstream", "shop", "error.type", "")
	has(t, dead, "error.type", "error", "upstrand.peer", "shop/dead", "http.request.resend_count", "", "http.response.status_code", "")
	has(t, good, "error.type", "", "upstrand.peer", "shop/good", "http.request.resend_count", "1", "http.response.status_code", "200", "server.address", "127.0.0.1")
}

// has looks for attributes; an empty value means that there must be none.
func has(t *testing.T, s tracetest.SpanStub, pairs ...string) {
	t.Helper()
	got := map[string]string{}
	for _, a := range s.Attributes {
		got[string(a.Key)] = a.Value.String()
	}
	for i := 0; i < len(pairs); i += 2 {
		if got[pairs[i]] != pairs[i+1] {
			t.Errorf("%s of the span of kind %v is %q, want %q", pairs[i], s.SpanKind, got[pairs[i]], pairs[i+1])
		}
	}
}

func TestErrorsInSpans(t *testing.T) {
	f := follow(t, 1)
	f.get("/shop/no")
	f.get("/nowhere")
	spans := f.all()
	if len(spans) != 4 {
		t.Fatalf("%d spans", len(spans))
	}
	has(t, spans[1], "http.response.status_code", "418", "error.type", "418")
	has(t, spans[2], "http.response.status_code", "418", "error.type", "")
	has(t, spans[3], "http.response.status_code", "404", "error.type", "no_route", "url.path", "/nowhere")
	if spans[1].Status.Code != codes.Error || spans[2].Status.Code != codes.Unset {
		t.Errorf("a 418 is %v for the attempt and %v for the request", spans[1].Status, spans[2].Status)
	}
}

// Who is followed is the client's to say, where it says it; a backend is told in any case.
func TestSampling(t *testing.T) {
	for name, c := range map[string]struct {
		sample float64
		parent string // flags; empty: the client says nothing
		spans  int
		flags  string
	}{
		"all": {1, "", 3, "01"}, "none": {0, "", 0, "00"}, "the client wants it": {0, "01", 3, "01"}, "the client does not": {1, "00", 0, "00"},
	} {
		t.Run(name, func(t *testing.T) {
			f := follow(t, c.sample)
			var fields []string
			if c.parent != "" {
				fields = []string{"traceparent", "00-" + parentTrace + "-" + parentSpan + "-" + c.parent}
			}
			saw := f.get("/shop", fields...)
			if !regexp.MustCompile("^00-[0-9a-f]{32}-[0-9a-f]{16}-" + c.flags + " $").MatchString(saw) {
				t.Errorf("the instance saw %q", saw)
			}
			if n := len(f.all()); n != c.spans {
				t.Errorf("%d spans, want %d", n, c.spans)
			}
		})
	}
}

// What is no valid context is not taken over, and does not reach a backend.
func TestBadContext(t *testing.T) {
	for _, value := range []string{"00-" + strings.Repeat("0", 32) + "-" + parentSpan + "-01", "nonsense", "ff-" + parentTrace + "-" + parentSpan + "-01"} {
		f := follow(t, 1)
		saw := f.get("/shop", "traceparent", value, "tracestate", "not=ours", "User-Agent", strings.Repeat("a", longestText-1)+"\xc3\xa9")
		spans := f.all()
		has(t, spans[len(spans)-1], "user_agent.original", strings.Repeat("a", longestText-1)+"\ufffd") // cut where a letter is
		if strings.Contains(saw, "not=ours") {
			t.Errorf("%s: the instance saw the state of a trace that is none: %q", value, saw)
		}
		if server := spans[len(spans)-1]; server.Parent.IsValid() || !strings.Contains(saw, server.SpanContext.TraceID().String()) {
			t.Errorf("%s: parent %v, the instance saw %q", value, server.Parent, saw)
		}
	}
}
