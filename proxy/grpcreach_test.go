package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestGRPCReaches: a file's grpc_pass finds what is published, and walks upstrands.
func TestGRPCReaches(t *testing.T) {
	w := newWorld(t, nil)
	a, _ := grpcServer(t, "a")
	b, asked := grpcServer(t, "b")
	w.set("svc", instance("i1", a))
	w.apply()
	w.mustLoad(true, `upstream dead { server `+refused(t)+`; } upstream alive { server `+b+`; } upstrand ring { upstream dead; upstream alive; next_upstream_statuses error timeout; }
server { listen 8080; location / { grpc_pass grpc://svc; }
  location /ring { grpc_pass grpc://$upstrand_ring; } location /named { set $to svc; grpc_pass grpc://$to; } }`)
	url, tr := w.speaksHTTP2(), h2c(t)
	for path, want := range map[string]string{"/x": "a:hi", "/named": "a:hi", "/ring": "b:hi"} {
		res, err := call(t, t.Context(), tr, url+path, strings.NewReader("hi"))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got, err := io.ReadAll(res.Body); string(got) != want || err != nil || res.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("%s: %d %q %v %v", path, res.StatusCode, got, err, res.Trailer)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestGRPCToHTTP1: a server that speaks HTTP/1 is a bad gateway, at once.
func TestGRPCToHTTP1(t *testing.T) {
	old := httptest.NewServer(http.NotFoundHandler())
	defer old.Close()
	w := newWorld(t, nil)
	w.mustLoad(false, `server { listen 8080; location / { grpc_pass `+old.Listener.Addr().String()+`; } }`)
	began := time.Now()
	res, err := call(t, t.Context(), h2c(t), w.speaksHTTP2()+"/", strings.NewReader("hi"))
	if err != nil || res.StatusCode != 502 || time.Since(began) > 3*time.Second {
		t.Errorf("%v, %v after %v", res, err, time.Since(began))
	}
}
