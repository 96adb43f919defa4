package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/accesslog"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

type countedLog struct{ open *atomic.Int64 }

func (countedLog) Write(b []byte) (int, error) { return len(b), nil }
func (c countedLog) Close() error              { c.open.Add(-1); return nil }

// TestReloadsGiveLogsBack: a file's log closes when no file that was put in force names it any more, whatever is published
// beside it and whatever became of files between.
func TestReloadsGiveLogsBack(t *testing.T) {
	const logged, plain = `server { listen 8080; access_log /l; location / { proxy_pass http://p; } }`, `server { listen 8080; location / { proxy_pass http://p; } }`
	for name, loads := range map[string]func(w *world){
		"loaded once":     func(w *world) { w.mustLoad(true, logged) },
		"loaded again":    func(w *world) { w.mustLoad(true, logged); w.mustLoad(true, logged) },
		"published again": func(w *world) { w.mustLoad(true, logged); w.publishHash("$arg_b"); w.publishHash("$arg_c") },
		"refused while in use": func(w *world) {
			w.mustLoad(true, logged)
			_ = w.load(false, `server { access_log /l; location / { proxy_pass http://no.such.host.invalid; } }`)
		},
		"in force before a key": func(w *world) { w.publish(); w.mustLoad(true, logged); w.publishHash("$arg_a") },
	} {
		t.Run(name, func(t *testing.T) {
			var open atomic.Int64
			w := newWorld(t, func(c *Config) {
				c.Lookup = func(host string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
				c.Logs = &accesslog.Files{Opener: func(string) (io.WriteCloser, error) { open.Add(1); return countedLog{&open}, nil }}
			})
			w.publishHash("$arg_a")
			loads(w)
			if open.Load() != 1 {
				t.Fatalf("%d open while it is used", open.Load())
			}
			w.mustLoad(true, plain)
			if open.Load() != 0 {
				t.Error("the log is open still")
			}
		})
	}
}

// TestALoadAfterTheEnd gives back what it made.
func TestALoadAfterTheEnd(t *testing.T) {
	var open atomic.Int64
	w := newWorld(t, func(c *Config) {
		c.Logs = &accesslog.Files{Opener: func(string) (io.WriteCloser, error) { open.Add(1); return countedLog{&open}, nil }}
	})
	if err := w.p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.load(false, `server { listen 8080; access_log /l; return 204; }`); err == nil || open.Load() != 0 {
		t.Errorf("%v, %d logs open", err, open.Load())
	}
}

// publish puts an upstream p in force, with more of its directives.
func (w *world) publish(more ...topology.Directive) {
	w.t.Helper()
	w.version++
	c := &topology.Config{Upstreams: []topology.Upstream{{Name: "p", Origin: topology.Declared,
		Directives: append([]topology.Directive{{"server", "127.0.0.1:9"}}, more...)}}}
	if err := w.p.Apply(&topology.Topology{Version: w.version, Epoch: 1, At: time.Now(), Config: c}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) publishHash(key string) { w.t.Helper(); w.publish(topology.Directive{"hash", key}) }

// TestOpenersAreBounded: one is made for each wire and kept, but neither for ever nor without end.
func TestOpenersAreBounded(t *testing.T) {
	made := 0
	w := newWorld(t, func(c *Config) { c.Opener = func(site.Wire) forward.Opener { made++; return &shifting{} } })
	w.mustLoad(false, `server { listen 8080; return 204; }`)
	table := w.p.table.Load()
	kept := func() (n int) {
		w.p.openers.all.Range(func(any, any) bool { n++; return true })
		return n
	}
	var wire site.Wire
	for range 2 {
		table.Opener(&wire)
	}
	if made != 1 || kept() != 1 {
		t.Errorf("made %d, kept %d", made, kept())
	}
	for i := range 2 * mostOpeners {
		table.Opener(&site.Wire{HeadMax: i + 1})
	}
	if kept() > mostOpeners {
		t.Errorf("%d openers", kept())
	}
	w.mustLoad(false, `server { listen 8080; return 204; }`)
	if kept() != 0 {
		t.Errorf("%d openers of the site before", kept())
	}
}

// TestAConnectionOfAClosedDoor: a client that came in by an address which the file gave up since must not meet the servers
// of another address.
func TestAConnectionOfAClosedDoor(t *testing.T) {
	w := newWorld(t, nil)
	var lns [2]net.Listener
	for i := range lns {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		lns[i] = ln
		done := make(chan error, 1)
		go func() { done <- w.p.Serve(ln) }()
		t.Cleanup(func() { _ = ln.Close(); <-done })
	}
	inner := fmt.Sprintf("server { listen %s; return 200 inner; }\n", lns[0].Addr())
	w.mustLoad(false, inner+fmt.Sprintf("server { listen %s; return 200 public; }", lns[1].Addr()))
	c, err := net.Dial("tcp", lns[1].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rd := bufio.NewReader(c)
	ask := func() (string, error) {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return "", err
		}
		r, err := http.ReadResponse(rd, nil)
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(r.Body)
		return string(body), err
	}
	if got, err := ask(); got != "public" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	w.mustLoad(false, inner)
	if got, err := ask(); err == nil {
		t.Errorf("after the reload it is answered: %q", got)
	}
}
