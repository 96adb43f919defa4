package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/upstrand/upstrand/deploy/bench/figures"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers gives the bytes that the plan of these tests wants.
func answers(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, strings.Repeat("x", 128))
}

func shortPlan(addr string) plan {
	return plan{mode: "h1", addr: addr, host: "bench.example", conns: 4, streams: 3, method: "GET", path: "/128", length: 128,
		warm: 20 * time.Millisecond, window: 100 * time.Millisecond, pid: os.Getpid()}
}

func serve(t *testing.T, h http.HandlerFunc, change func(*httptest.Server)) string {
	s := httptest.NewUnstartedServer(h)
	if s.EnableHTTP2 = true; change != nil {
		change(s)
	}
	if s.TLS == nil {
		s.Start()
	} else {
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func secured(s *httptest.Server) { s.TLS = &tls.Config{} }

func mustCount(t *testing.T, res figures.Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Err(); err != nil {
		t.Fatalf("it does not count: %v", err)
	}
	if res.Elapsed < 100*time.Millisecond || res.P50 <= 0 || res.P50 > res.P99 || res.P99 > res.Longest {
		t.Errorf("odd figures: %+v", res)
	}
}

func TestPlainRequests(t *testing.T) {
	p := shortPlan(serve(t, answers, nil))
	res, err := loop(p)
	mustCount(t, res, err)
	p.method, p.body = "POST", 4096
	res, err = loop(p)
	mustCount(t, res, err)
}

func TestLargeAnswersAreCountedToTheEnd(t *testing.T) {
	const size = 1 << 20
	var served atomic.Int64
	p := shortPlan(serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1048576")
		_, _ = w.Write(make([]byte, size))
		served.Add(1)
	}, nil))
	p.length = size
	res, err := loop(p)
	mustCount(t, res, err)
	if n := int(served.Load()); res.Requests > n {
		t.Errorf("%d answers counted, %d given", res.Requests, n)
	}
}

func TestRequestsOverTLS(t *testing.T) {
	p := shortPlan(serve(t, answers, secured))
	for _, p.mode = range []string{"tls", "h2"} {
		res, err := loop(p)
		mustCount(t, res, err)
	}
}

func TestRateIsKept(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("needs two processors: generator and server never sleep")
	}
	p := shortPlan(serve(t, answers, nil))
	p.rate, p.window = 400, 300*time.Millisecond
	res, err := loop(p)
	mustCount(t, res, err)
	if res.Requests < 90 || res.Requests > 130 {
		t.Errorf("%d requests in %v, wanted about 120", res.Requests, res.Elapsed)
	}
}

// With one connection and a server that takes 20 ms, requests wait for the connection: that belongs to their latency.
func TestLatencyCountsFromTheTimeThatARequestWasDue(t *testing.T) {
	p := shortPlan(serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		answers(w, r)
	}, nil))
	p.rate, p.conns, p.window = 200, 1, 200*time.Millisecond
	res, err := loop(p)
	if err != nil || res.Failed > 0 {
		t.Fatal(err, res.Fault)
	}
	if res.Longest < 60*time.Millisecond || res.Late < 60*time.Millisecond {
		t.Errorf("longest %v, late %v: wanted much more than the server's 20ms", res.Longest, res.Late)
	}
}

func TestWrongAnswersAreCounted(t *testing.T) {
	for _, p := range []plan{
		shortPlan(serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "short") }, nil)),
		shortPlan(serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, nil)),
	} {
		res, err := loop(p)
		if err != nil {
			t.Fatal(err)
		}
		if res.Failed != p.conns || res.Fault == "" || res.Err() == nil {
			t.Errorf("%d failed (%s), wanted each of %d connections to", res.Failed, res.Fault, p.conns)
		}
	}
	for _, mode := range []string{"tls", "h2"} {
		p := shortPlan(serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, secured))
		p.mode = mode
		if res, err := loop(p); err != nil || res.Failed != p.conns {
			t.Errorf("%s: %d failed (%s), %v", mode, res.Failed, res.Fault, err)
		}
	}
}

// One connection of several that is never answered is what a lost wake-up looks like.
func TestDeadConnectionIsNoticed(t *testing.T) {
	for _, c := range []struct {
		mode string
		nth  int64 // request that is never answered
	}{{"h1", 9}, {"tls", 9}, {"h2", 9}, {"h1", 1}, {"tls", 1}, {"h2", 1}} {
		mode, nth := c.mode, c.nth
		t.Run(fmt.Sprintf("%s-%d", mode, nth), func(t *testing.T) {
			t.Parallel()
			var served atomic.Int64
			end := make(chan struct{})
			p := shortPlan(serve(t, func(w http.ResponseWriter, r *http.Request) {
				if served.Add(1) == nth {
					<-end
				}
				answers(w, r)
			}, func(s *httptest.Server) {
				if mode != "h1" {
					secured(s)
				}
			}))
			defer close(end)
			p.mode, p.streams = mode, 1
			res, err := loop(p)
			if err != nil {
				t.Fatal(err)
			}
			if res.Stalled != 1 || res.Err() == nil {
				t.Errorf("%d stalled (%d failed: %s), wanted 1", res.Stalled, res.Failed, res.Fault)
			}
		})
	}
}

func TestHeldConnectionsStayOpen(t *testing.T) {
	var open atomic.Int64
	p := shortPlan(serve(t, answers, func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed:
				open.Add(-1)
			}
		}
	}))
	p.conns = 20
	in, stop := io.Pipe()
	var out bytes.Buffer
	looked := make(chan int64, 1)
	err := p.hold(in, writerFunc(func(b []byte) (int, error) {
		looked <- open.Load()
		_ = stop.Close()
		return out.Write(b)
	}))
	if err != nil || out.String() != "held 20\n" {
		t.Fatalf("said %q, %v", out.String(), err)
	}
	if n := <-looked; n != 20 {
		t.Errorf("%d connections are open, want 20", n)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestPlansThatMakeNoSense(t *testing.T) {
	for _, p := range []plan{{mode: "h3"}, {mode: "h2", rate: 1}, {mode: "h1", addr: "localhost:1", conns: 1}, {mode: "h1", addr: "[::1]:1", conns: 1}} {
		if err := p.run(io.Discard); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
}
