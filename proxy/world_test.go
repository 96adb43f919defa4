package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/confgen/topology"
)

// world is a proxy on a loopback port with backends behind it.
type world struct {
	t        *testing.T
	p        *Proxy
	url      string
	addr     string
	client   *http.Client
	version  int64
	services map[string][]topology.Instance
	zoned    map[string]bool
	paths    map[string]string // path to service
	served   chan error
}

func newWorld(t *testing.T, set func(*Config)) *world {
	t.Helper()
	c := Config{Logger: zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)}
	if set != nil {
		set(&c)
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}
	w := &world{t: t, p: p, addr: l.Addr().String(), url: "http://" + l.Addr().String(),
		client:   &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		services: map[string][]topology.Instance{}, zoned: map[string]bool{}, paths: map[string]string{}, served: make(chan error, 1)}
	go func() { w.served <- p.Serve(l) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-w.served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return w
}

// instance is one with max_fails and fail_timeout of nginx's defaults.
func instance(id, addr string) topology.Instance {
	return topology.Instance{ID: id, Addr: addr, Incarnation: 1}
}

// set replaces a service's instances; apply puts it in force.
func (w *world) set(service string, instances ...topology.Instance) {
	for i := range instances {
		if instances[i].Order == 0 {
			instances[i].Order = int64(i + 1)
		}
	}
	w.services[service] = instances
	if w.paths["/"+service] == "" {
		w.paths["/"+service] = service
	}
}

func (w *world) apply() {
	w.t.Helper()
	w.version++
	if err := w.p.Apply(w.topology()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) topology() *topology.Topology {
	w.t.Helper()
	return &topology.Topology{Version: w.version, Epoch: 1, At: time.Now(), Config: w.config()}
}

func (w *world) config() *topology.Config {
	c := &topology.Config{}
	for name, instances := range w.services {
		c.Services = append(c.Services, topology.Service{Name: name, Instances: instances})
		c.Upstreams = append(c.Upstreams, topology.Upstream{Name: name, Origin: topology.Derived, Directives: []topology.Directive{{"discover", name}}})
		if !w.zoned[name] {
			continue
		}
		strand := topology.Upstrand{Name: name, Origin: topology.Derived, OwnZoneFirst: true}
		zones := map[string]bool{}
		for _, in := range instances {
			zones[in.Zone] = true
		}
		for z := range zones {
			c.Upstreams = append(c.Upstreams, topology.Upstream{Name: name + "@" + z, Origin: topology.Derived,
				Directives: []topology.Directive{{"discover", name, "zone=" + z}}})
			strand.Directives = append(strand.Directives, topology.Directive{"upstream", name + "@" + z})
		}
		strand.Directives = append(strand.Directives, topology.Directive{"order", "per_request"},
			topology.Directive{"next_upstream_statuses", "error", "timeout"})
		c.Upstrands = append(c.Upstrands, strand)
	}
	for path, service := range w.paths {
		r := topology.Route{Path: path, Origin: topology.Derived, Upstream: service}
		if w.zoned[service] {
			r.Upstream, r.Upstrand = "", service
		}
		c.Routes = append(c.Routes, r)
	}
	slices.SortFunc(c.Services, func(a, b topology.Service) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Upstreams, func(a, b topology.Upstream) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Upstrands, func(a, b topology.Upstrand) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Routes, func(a, b topology.Route) int { return strings.Compare(a.Path, b.Path) })
	if err := c.Validate(); err != nil {
		w.t.Fatal(err)
	}
	return c
}

type answer struct {
	status int
	body   string
	header http.Header
}

func (w *world) do(method, path string, body io.Reader, header ...string) answer {
	w.t.Helper()
	a, err := w.try(method, path, body, header...)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (w *world) try(method, path string, body io.Reader, header ...string) (answer, error) {
	req, err := http.NewRequest(method, w.url+path, body)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(b), resp.Header}, err
}

func (w *world) get(path string) answer { w.t.Helper(); return w.do("GET", path, nil) }

// backend is an HTTP server that counts what it gets.
type backend struct {
	name string
	srv  *httptest.Server
	got  atomic.Int64
	mu   sync.Mutex
	last *http.Request
}

// newBackend answers with its name unless handle is given.
func newBackend(t *testing.T, name string, handle http.HandlerFunc) *backend {
	t.Helper()
	b := &backend{name: name}
	b.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.got.Add(1)
		b.mu.Lock()
		b.last = r
		b.mu.Unlock()
		if handle != nil {
			handle(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(b.kill)
	return b
}

func (b *backend) addr() string { return b.srv.Listener.Addr().String() }

// kill ends the backend as kill -9 does: nothing listens, all connections are cut.
func (b *backend) kill() {
	_ = b.srv.Listener.Close()
	b.srv.CloseClientConnections()
	b.srv.Close()
}

func (b *backend) request() *http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// rawBackend speaks to each connection as the function says; n counts connections from 1.
func rawBackend(t *testing.T, speak func(n int, c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				speak(n, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// refused is an address where nothing listens. It is that of a connection's near end, so that nobody else gets the port
// before the test is over.
func refused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().String()
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 5 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
