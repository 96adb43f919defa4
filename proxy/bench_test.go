package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/site"
)

// fleet is so many services with so many instances each.
func fleet(services, instances int) *topology.Config {
	c := &topology.Config{}
	for s := range services {
		name := fmt.Sprintf("service-%05d", s)
		svc := topology.Service{Name: name}
		for i := range instances {
			svc.Instances = append(svc.Instances, topology.Instance{ID: fmt.Sprint("i", i), Order: int64(i + 1), Incarnation: 1,
				Addr: fmt.Sprintf("10.%d.%d.%d:8080", s>>8&255, s&255, i&255), Weight: 1 + i%3})
		}
		c.Services = append(c.Services, svc)
		c.Upstreams = append(c.Upstreams, topology.Upstream{Name: name, Origin: topology.Derived, Directives: []topology.Directive{{"discover", name}}})
		c.Routes = append(c.Routes, topology.Route{Path: "/api/" + name, Origin: topology.Derived, Upstream: name})
	}
	return c
}

// joined is c with one instance more in one service, all else shared as a Replica shares it.
func joined(c *topology.Config, n int) *topology.Config {
	next := *c
	next.Services = append([]topology.Service(nil), c.Services...)
	s := &next.Services[n%len(c.Services)]
	s.Instances = append(append([]topology.Instance(nil), s.Instances...), topology.Instance{
		ID: fmt.Sprint("late", n), Order: int64(1000 + n), Incarnation: 1, Addr: fmt.Sprintf("10.200.%d.%d:8080", n>>8&255, n&255)})
	return &next
}

func idle(tb testing.TB) *Proxy {
	tb.Helper()
	p, err := New(Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Shutdown(tb.Context()) })
	return p
}

func BenchmarkApplyJoinAt10000(b *testing.B) {
	for _, shape := range [][2]int{{1, 10_000}, {100, 100}, {2500, 4}} {
		b.Run(fmt.Sprintf("%dx%d", shape[0], shape[1]), func(b *testing.B) {
			p := idle(b)
			base := fleet(shape[0], shape[1])
			versions := make([]*topology.Topology, 0, 64)
			for n := range 64 {
				c := base
				if n%2 == 1 { // join, leave, join, …
					c = joined(base, n)
				}
				versions = append(versions, &topology.Topology{Version: int64(n + 1), Epoch: 1, At: time.Now(), Config: c})
			}
			if err := p.Apply(versions[0]); err != nil {
				b.Fatal(err)
			}
			n := 1
			for b.Loop() {
				if err := p.Apply(versions[n%64]); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

func BenchmarkFirstApplyOf10000(b *testing.B) {
	t := &topology.Topology{Version: 1, Epoch: 1, At: time.Now(), Config: fleet(100, 100)}
	for b.Loop() {
		p := idle(b)
		if err := p.Apply(t); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	p := idle(b)
	if err := p.Apply(&topology.Topology{Version: 1, Config: fleet(1000, 1)}); err != nil {
		b.Fatal(err)
	}
	t := p.table.Load()
	host, target := []byte("shop.example:8080"), []byte("/api/service-00500/orders/17?x=1")
	b.ReportAllocs()
	for b.Loop() {
		path, ok := site.Normalise(target, true)
		if !ok || t.lookup(host, path) == nil {
			b.Fatal("not found")
		}
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	p := idle(t)
	if err := p.Apply(&topology.Topology{Version: 1, Config: fleet(3, 1)}); err != nil {
		t.Fatal(err)
	}
	table := p.table.Load()
	host, target := []byte("shop"), []byte("/api/service-00001/orders/17?x=1")
	if n := testing.AllocsPerRun(100, func() {
		path, _ := site.Normalise(target, true)
		if table.lookup(host, path) == nil {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkProxiedGet is a small GET through everything, client and backend in the same process.
func BenchmarkProxiedGet(b *testing.B) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer backend.Close()
	p := idle(b)
	config := fleet(1, 1)
	config.Services[0].Instances[0].Addr = backend.Listener.Addr().String()
	if err := p.Apply(&topology.Topology{Version: 1, Config: config}); err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = p.Serve(l) }()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	url := "http://" + l.Addr().String() + "/api/service-00000/x"
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := client.Get(url)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}
