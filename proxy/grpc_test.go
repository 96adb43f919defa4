package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// h2c makes a transport that speaks HTTP/2 in the clear alone.
func h2c(t *testing.T) *http.Transport {
	t.Helper()
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: p, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// speaksHTTP2 opens another door of the proxy, where HTTP/2 is spoken too.
func (w *world) speaksHTTP2() string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	go func() { _ = w.p.ServeDoor(l, Door{HTTP2: true}) }()
	return "http://" + l.Addr().String()
}

// grpcServer is a peer that answers as gRPC servers do, and counts requests.
func grpcServer(t *testing.T, name string) (addr string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	srv := &http.Server{Protocols: p, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("X-Seen", fmt.Sprint(r.Proto, " ", r.Host, " ", r.URL.Path, " te=", r.Header.Get("Te"), " x=", r.Header.Get("X-Set")))
		if r.URL.Path == "/status" {
			w.WriteHeader(503)
			return
		}
		rc := http.NewResponseController(w)
		_ = rc.Flush()
		b := make([]byte, 100)
		for {
			n, err := r.Body.Read(b)
			if n > 0 {
				_, _ = w.Write([]byte(name + ":" + string(b[:n])))
				_ = rc.Flush()
			}
			if err != nil {
				break
			}
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return l.Addr().String(), asked
}

func call(t *testing.T, ctx context.Context, tr *http.Transport, url string, body io.Reader) (*http.Response, error) {
	t.Helper()
	req, _ := http.NewRequestWithContext(ctx, "POST", url, body)
	req.Header.Set("Te", "trailers")
	req.Header.Set("Content-Type", "application/grpc")
	return tr.RoundTrip(req)
}

// TestGRPC: calls go to the servers of an upstream, both ways at once and with their trailers.
func TestGRPC(t *testing.T) {
	w := newWorld(t, nil)
	a, _ := grpcServer(t, "a")
	w.mustLoad(false, `upstream u { server `+a+`; }
server { listen 8080; grpc_set_header X-Set yes; proxy_set_header X-Set no;
  location / { grpc_pass grpc://u; } location /host { grpc_pass `+a+`; grpc_set_header Host h.example; }
  location /any/ { set $to u; grpc_pass grpc://$to; } location /h1 { proxy_pass http://u; proxy_http_version 2; proxy_pass_trailers on; }
  location /hidden { grpc_pass grpc://u; grpc_hide_header X-Seen; } }`)
	url, tr := w.speaksHTTP2(), h2c(t)
	for path, want := range map[string]string{
		"/svc/m":  "HTTP/2.0 u /svc/m te=trailers x=yes",
		"/host":   "HTTP/2.0 h.example /host te=trailers x=", // an inner line drops the outer ones
		"/any/x":  "HTTP/2.0 u /any/x te=trailers x=yes",
		"/h1":     "HTTP/2.0 u /h1 te= x=no",
		"/hidden": "",
	} {
		from, to := io.Pipe()
		if path == "/h1" { // there the body is taken in first
			go func() { _, _ = io.WriteString(to, "1"); _ = to.Close() }()
		}
		res, err := call(t, t.Context(), tr, url+path, from)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got := res.Header.Get("X-Seen"); got != want || res.StatusCode != 200 {
			t.Errorf("%s: %d %q, want %q", path, res.StatusCode, got, want)
		}
		var got string
		if path != "/h1" {
			for i := range 3 {
				_, _ = fmt.Fprint(to, i)
				b := make([]byte, 3)
				if _, err := io.ReadFull(res.Body, b); err != nil {
					t.Fatal(err)
				}
				got += string(b)
			}
			_ = to.Close()
		}
		rest, err := io.ReadAll(res.Body)
		if got += string(rest); err != nil || got != "a:0a:1a:2" && path != "/h1" || res.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("%s: %q, trailer %v, %v", path, got, res.Trailer, err)
		}
	}
}

// TestGRPCFailures: who can't be reached is passed over; without anybody left the answer is an HTTP status, which error_page
// may turn into one of gRPC.
func TestGRPCFailures(t *testing.T) {
	w := newWorld(t, nil)
	a, asked := grpcServer(t, "a")
	w.mustLoad(false, `upstream u { server `+refused(t)+`; server `+a+`; } upstream none { server `+refused(t)+`; }
server { listen 8080; location / { grpc_pass grpc://u; } location /none { grpc_pass grpc://none; error_page 502 = @mapped; }
  location /bare { grpc_pass grpc://none; } location /next { grpc_pass grpc://u; grpc_next_upstream http_503 non_idempotent; }
  location @mapped { default_type application/grpc; add_header grpc-status 14 always; return 204; } }`)
	url, tr := w.speaksHTTP2(), h2c(t)
	for range 4 {
		res, err := call(t, t.Context(), tr, url+"/x", strings.NewReader("hi"))
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(res.Body); string(b) != "a:hi" {
			t.Errorf("%d %q", res.StatusCode, b)
		}
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("asked %d times", n)
	}
	res, err := call(t, t.Context(), tr, url+"/none", strings.NewReader("hi"))
	if err != nil || res.Header.Get("Grpc-Status") != "14" {
		t.Errorf("%v, %v", res, err)
	}
	res, err = call(t, t.Context(), tr, url+"/bare", strings.NewReader("hi"))
	if err != nil || res.StatusCode != 502 {
		t.Errorf("%v, %v", res, err)
	}
}

// TestGRPCClientGoes: a call that is taken back is taken back at the server.
func TestGRPCClientGoes(t *testing.T) {
	w := newWorld(t, nil)
	gone := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	srv := &http.Server{Protocols: p, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	w.mustLoad(false, `server { listen 8080; location / { grpc_pass `+l.Addr().String()+`; } }`)
	ctx, cancel := context.WithCancel(t.Context())
	res, err := call(t, ctx, h2c(t), w.speaksHTTP2()+"/", strings.NewReader("hi"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("no error")
	}
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Error("the server still answers")
	}
}

// TestGRPCServerLeaves: its connection closes when the call that goes on has ended.
func TestGRPCServerLeaves(t *testing.T) {
	w := newWorld(t, nil)
	a, _ := grpcServer(t, "a")
	b, _ := grpcServer(t, "b")
	conf := func(addr string) string {
		return `upstream u { server ` + addr + `; } server { listen 8080; location / { grpc_pass grpc://u; } }`
	}
	w.mustLoad(false, conf(a))
	url, tr := w.speaksHTTP2(), h2c(t)
	from, to := io.Pipe()
	res, err := call(t, t.Context(), tr, url+"/", from)
	if err != nil {
		t.Fatal(err)
	}
	w.mustLoad(false, conf(b))
	if n := w.p.peers2.Busy(); n != 1 {
		t.Errorf("%d connections to who left", n)
	}
	next, err := call(t, t.Context(), tr, url+"/", strings.NewReader("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(next.Body); string(text) != "b:hi" {
		t.Errorf("%q", text)
	}
	_, _ = io.WriteString(to, "on")
	_ = to.Close()
	if text, err := io.ReadAll(res.Body); string(text) != "a:on" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	eventually(t, "its connection closes", func() bool { return w.p.peers2.Busy() == 0 })
}

// TestGRPCFaults: what grpc_pass can't say.
func TestGRPCFaults(t *testing.T) {
	for text, want := range map[string]string{
		"grpc://u/path":                 `"grpc://u/path"`,
		"http://u":                      `"http://u"`,
		"grpc://u:1":                    `can't have a port`,
		"grpcs://u; grpc_ssl_verify on": "grpc_ssl_verify on needs grpc_ssl_trusted_certificate",
		"u; proxy_http_version 3":       "1.0, 1.1, 2",
		"u; grpc_next_upstream never":   `"never"`,
		"u; grpc_read_timeout soon":     `"soon"`,
	} {
		w := newWorld(t, nil)
		err := w.load(false, `upstream u { server 127.0.0.1:1; } server { listen 8080; location / { grpc_pass `+text+`; } }`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
