package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/http1"
)

// TestRetryDoesNotReachAPeerThatLeft: a request that began on an old table, whose first peer fails after the other one
// left, goes on with the table of now.
func TestRetryDoesNotReachAPeerThatLeft(t *testing.T) {
	w := newWorld(t, nil)
	entered, die := make(chan struct{}), make(chan struct{})
	dying := rawBackend(t, func(_ int, c net.Conn) { readHead(c); close(entered); <-die })
	left, joined := newBackend(t, "left", nil), newBackend(t, "joined", nil)
	w.set("orders", instance("dying", dying), instance("left", left.addr()))
	w.apply()
	got := make(chan answer)
	go func() { a, _ := w.try("GET", "/orders", nil); got <- a }()
	<-entered
	late := instance("joined", joined.addr())
	late.Order = 9
	w.set("orders", instance("dying", dying), late)
	w.apply()
	close(die)
	if a := <-got; a.body != "joined" {
		t.Errorf("%+v", a)
	}
	if left.got.Load() != 0 {
		t.Error("a peer that left got a retry")
	}
}

// TestAddressOfAnotherService: the address of an instance that left is taken over at once by another service. No
// request of the old one may arrive there, over kept connections neither.
func TestAddressOfAnotherService(t *testing.T) {
	w := newWorld(t, nil)
	var wrong atomic.Int32
	var owner atomic.Value
	owner.Store("/orders")
	b := newBackend(t, "b", func(_ http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, owner.Load().(string)) {
			wrong.Add(1)
		}
	})
	w.set("orders", instance("o", b.addr()))
	w.set("users")
	w.apply()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = w.try("GET", "/orders", nil)
				}
			}
		})
	}
	eventually(t, "traffic", func() bool { return b.got.Load() > 50 })
	moved := instance("u", b.addr())
	w.set("orders")
	w.set("users", moved)
	w.apply()
	// What was sent before the swap may still be on its way to the backend's handler.
	eventually(t, "old attempts end", func() bool { return w.p.pools.Busy() == 0 })
	owner.Store("/users")
	for range 20 {
		w.get("/users")
	}
	close(stop)
	wg.Wait()
	if n := wrong.Load(); n != 0 {
		t.Errorf("%d requests for the old owner reached the new one", n)
	}
}

func TestGonePeerLosesItsIdleConnectionsAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	closed := make(chan struct{})
	addr := rawBackend(t, func(_ int, c net.Conn) {
		readHead(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		_, _ = io.Copy(io.Discard, c) // ends when the proxy closes
		close(closed)
	})
	w.set("orders", instance("a", addr))
	w.set("users", instance("a", addr)) // another service's: not shared
	w.apply()
	w.get("/orders")
	w.set("orders")
	w.apply()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Error("the idle connection is still open")
	}
}

func TestLongStreamsOfAGonePeerAreDrained(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Peers = http1.Settings{Drain: 150 * time.Millisecond} })
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		for i := 0; r.Context().Err() == nil; i++ {
			_, _ = fmt.Fprintf(rw, "data: %d\n\n", i)
			_ = http.NewResponseController(rw).Flush()
			select {
			case <-time.After(10 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	})
	w.set("orders", instance("b", b.addr()))
	w.apply()
	resp, err := w.client.Get(w.url + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	began := time.Now()
	w.set("orders")
	w.apply()
	n, err := io.Copy(io.Discard, resp.Body)
	if took := time.Since(began); err == nil || n == 0 || took < 120*time.Millisecond || took > 3*time.Second {
		t.Errorf("the stream ended after %v with %d bytes, %v; want a cut at the drain deadline", took, n, err)
	}
}

// TestUnrelatedChangesTouchNothing: an applied topology with a change elsewhere keeps groups, counters and connections.
func TestUnrelatedChangesTouchNothing(t *testing.T) {
	w := newWorld(t, nil)
	var from sync.Map // addresses of connections
	b := newBackend(t, "b", func(_ http.ResponseWriter, r *http.Request) { from.Store(r.RemoteAddr, true) })
	w.set("orders", instance("a", refused(t)), instance("b", b.addr()))
	w.apply()
	w.get("/orders")
	group, before := w.p.table.Load().groups["orders"].group, w.state("orders")
	for i := range 5 {
		w.set("users", instance(fmt.Sprint("u", i), b.addr()))
		w.paths[fmt.Sprint("/extra", i)] = "users"
		w.apply()
	}
	if w.p.table.Load().groups["orders"].group != group {
		t.Error("an unchanged upstream got another group")
	}
	if after := w.state("orders"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("state moved from %+v to %+v", before, after)
	}
	w.get("/orders")
	n := 0
	from.Range(func(any, any) bool { n++; return true })
	if n != 1 || b.got.Load() != 2 {
		t.Errorf("%d connections for %d requests, want the first kept", n, b.got.Load())
	}
	again := *w.p.table.Load().topology
	again.Version++
	if err := w.p.Apply(&again); err != nil {
		t.Fatal(err)
	}
	if w.p.table.Load().groups["orders"].group != group || w.p.table.Load().topology.Version != again.Version {
		t.Error("a repeated content with a new version changes the version alone")
	}
}

// TestRefusedTopologyKeepsTheLast: what can fail comes before the first live change.
func TestRefusedTopologyKeepsTheLast(t *testing.T) {
	w := newWorld(t, nil)
	b := newBackend(t, "b", nil)
	w.set("orders", instance("b", b.addr()))
	w.apply()
	if err := w.p.Apply(&topology.Topology{Version: 99}); err == nil {
		t.Error("a topology without content was taken")
	}
	if a := w.get("/orders"); a.status != 200 || w.p.table.Load().topology.Version == 99 {
		t.Errorf("%+v", a)
	}
}

func TestServiceMetricsGoWithTheService(t *testing.T) {
	r := prometheus.NewRegistry()
	w := newWorld(t, func(c *Config) { c.Registerer = r })
	b := newBackend(t, "b", nil)
	w.set("orders", instance("a", refused(t)), instance("b", b.addr()))
	w.set("users")
	w.apply()
	w.get("/orders")
	w.get("/users")
	w.get("/none")
	got := gathered(t, r)
	for series, want := range map[string]float64{
		"requests_total{code=2xx,service=orders}": 1, "requests_total{code=5xx,service=users}": 1, "retries_total{service=orders}": 1,
		"no_peer_total{service=users}": 1, "unrouted_requests_total{code=4xx}": 1, "topology_version{}": 1,
		"request_seconds{code=2xx,service=orders}": 1, "request_seconds{code=5xx,service=users}": 1, "upstream_header_seconds{service=orders}": 1,
		"upstream_in_flight{upstream=orders}": 0, "upstream_in_flight{upstream=users}": 0, "client_connections_accepted_total{}": 1, "client_requests_total{}": 3,
		"client_connections{state=all}": 1,
	} {
		if v, there := got[series]; v != want || !there {
			t.Errorf("%s is %v, want %v", series, v, want)
		}
	}
	delete(w.services, "orders")
	delete(w.paths, "/orders")
	w.apply()
	for series := range gathered(t, r) {
		if strings.Contains(series, "orders") {
			t.Errorf("%s is still there", series)
		}
	}
}

// gathered is all series by name and labels, without the prefix; of histograms the number of observations.
func gathered(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := strings.TrimPrefix(f.GetName(), "upstrand_proxy_") + "{" + strings.Join(labels, ",") + "}"
			out[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

func TestDebugPages(t *testing.T) {
	w := newWorld(t, nil)
	admin := w.p.Admin(func() map[string]string { return map[string]string{"topology_source": "topic"} }, nil)
	page := func(path string) (int, string) {
		rec := httptest.NewRecorder()
		admin.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		return rec.Code, rec.Body.String()
	}
	if code, _ := page("/debug/topology"); code != 503 {
		t.Errorf("without a topology: %d", code)
	}
	w.set("orders", instance("a", refused(t)), instance("b", newBackend(t, "b", nil).addr()))
	w.apply()
	w.get("/orders")
	code, text := page("/debug/topology")
	top := topologyPage{publishedPage: &publishedPage{}}
	if err := json.Unmarshal([]byte(text), &top); err != nil || code != 200 {
		t.Fatalf("%d %s %v", code, text, err)
	}
	if top.Version != 1 || top.Agent["topology_source"] != "topic" || len(top.Routes) != 1 || top.Routes[0].Stops[0] != "orders" {
		t.Errorf("%+v", top)
	}
	code, text = page("/debug/upstreams?upstream=orders")
	var ups []upstreamPage
	if err := json.Unmarshal([]byte(text), &ups); err != nil || code != 200 || len(ups) != 1 {
		t.Fatalf("%d %s %v", code, text, err)
	}
	if p := ups[0].Peers; p[0].Reason != "failed" || p[0].Fails != 1 || p[1].Reason != "eligible" || p[1].ID != "orders/b" {
		t.Errorf("%+v", p)
	}
	for query, want := range map[string]int{"name=orders": 200, "name=nobody": 404, "name=orders&upstream=orders": 400, "upsteam=orders": 400} {
		if code, text := page("/debug/upstreams?" + query); code != want {
			t.Errorf("?%s: %d %s", query, code, text)
		}
	}
	if code, _ := page("/debug/upstreams?name=nobody"); code != 404 {
		t.Errorf("unknown upstream: %d", code)
	}
}

// TestSwapsUnderLoad replaces instances one after another under concurrent requests: none fails, and nobody who left
// for good gets a request afterwards.
func TestSwapsUnderLoad(t *testing.T) {
	w := newWorld(t, nil)
	const n = 6
	var backends []*backend
	for i := range n {
		backends = append(backends, newBackend(t, fmt.Sprint("b", i), nil))
	}
	at := func(i int) topology.Instance {
		in := instance(fmt.Sprint("i", i), backends[i%n].addr())
		in.Incarnation, in.Order = int64(i+1), int64(i+1)
		return in
	}
	w.set("orders", at(0), at(1))
	w.apply()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var failed, served atomic.Int64
	for range 6 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if a, err := w.try("GET", "/orders", nil); err != nil || a.status != 200 {
					failed.Add(1)
					t.Errorf("%+v, %v", a, err)
					return
				}
				served.Add(1)
			}
		})
	}
	for i := range 40 {
		if i%2 == 0 {
			w.set("orders", at(i+1), at(i+2))
		} else {
			w.set("orders", at(i+2)) // all but one leave
		}
		w.apply()
		seen := served.Load()
		eventually(t, "traffic goes on", func() bool { return served.Load() > seen+5 || failed.Load() > 0 })
	}
	close(stop)
	wg.Wait()
}
