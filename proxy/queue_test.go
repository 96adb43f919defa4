package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests for whom no peer has room wait in order, are served when there is room, and get 502 after their time.
func TestUpstreamQueue(t *testing.T) {
	metrics, path := prometheus.NewRegistry(), filepath.Join(t.TempDir(), "access.log")
	w := newWorld(t, func(c *Config) { c.Registerer, c.AccessLog.Path = metrics, path })
	began, release := make(chan string, 10), make(chan struct{})
	b := newBackend(t, "b", func(w http.ResponseWriter, r *http.Request) {
		began <- r.URL.Path
		<-release
		_, _ = io.WriteString(w, r.URL.Path)
	})
	w.mustLoad(false, `upstream u { zone u 64k; server `+b.addr()+` max_conns=1; queue 2 timeout=60s; }
server { listen 8080; add_header X-Queue "[$upstream_queue_time]"; location / { proxy_pass http://u; } }`)
	var all sync.WaitGroup
	answers := make([]answer, 3)
	waiting := func(n int) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); w.p.Group("u").Waiting() != n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d wait, want %d", w.p.Group("u").Waiting(), n)
			}
		}
	}
	for i := range 3 {
		all.Go(func() { answers[i] = w.get(fmt.Sprintf("/%d", i)) })
		if i == 0 {
			<-began
		} else {
			waiting(i)
		}
	}
	if got := gathered(t, metrics); got["upstream_queued{upstream=u}"] != 2 || got["upstream_in_flight{upstream=u}"] != 1 {
		t.Errorf("metrics %v, %v", got["upstream_queued{upstream=u}"], got["upstream_in_flight{upstream=u}"])
	}
	if a := w.get("/3"); a.status != 502 { // the queue is full
		t.Errorf("one too many: %d %s", a.status, a.body)
	}
	for _, next := range []string{"/1", "/2", ""} {
		release <- struct{}{}
		if next != "" {
			if got := <-began; got != next {
				t.Errorf("%s is served before %s", got, next)
			}
		}
	}
	all.Wait()
	for i, a := range answers {
		if a.status != 200 || a.body != fmt.Sprintf("/%d", i) || (a.header.Get("X-Queue") == "[]") != (i == 0) {
			t.Errorf("%d: %d %q, waited %s", i, a.status, a.body, a.header.Get("X-Queue"))
		}
	}
	for _, l := range linesOf(t, w.p, path) {
		if strings.HasPrefix(l.Target, "/3") && (l.Status != 502 || l.Cause != "queue_full") {
			t.Errorf("%+v", l)
		}
	}
}

// Who waits too long gets 502; a client that leaves takes its place along.
func TestUpstreamQueueEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	w := newWorld(t, func(c *Config) { c.AccessLog.Path = path })
	began, release := make(chan struct{}, 10), make(chan struct{})
	b := newBackend(t, "b", func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-release
	})
	w.mustLoad(false, `upstream u { server `+b.addr()+` max_conns=1; queue 1 timeout=50ms; } upstream long { server `+b.addr()+` max_conns=1; queue 1; }
server { listen 8080; location / { proxy_pass http://u; } location /long { proxy_pass http://long; } }`)
	var all sync.WaitGroup
	all.Go(func() { w.get("/") })
	<-began
	if a := w.get("/"); a.status != 502 {
		t.Errorf("after its time: %d", a.status)
	}
	all.Go(func() { w.get("/long") })
	<-began
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
	for _, want := range []int{1, 0} {
		for end := time.Now().Add(5 * time.Second); w.p.Group("long").Waiting() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d wait, want %d", w.p.Group("long").Waiting(), want)
			}
		}
		_ = c.Close()
	}
	close(release)
	all.Wait()
	if l := linesOf(t, w.p, path)[0]; l.Cause != "queue_timeout" {
		t.Errorf("%+v", l)
	}
}
