package site

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// still is an engine of which nothing is allocated: what is left is ours.
type still struct {
	fields []forward.Field
	body   stillBody
}

func (s *still) Open(context.Context, *balance.Peer, bool) forward.Backend {
	s.body.done = false
	return s
}
func (s *still) Send(*forward.Request) error         { return nil }
func (s *still) Head() (int, []forward.Field, error) { return 200, s.fields, nil }
func (s *still) Body() forward.Source                { return &s.body }
func (s *still) Sent() forward.Progress              { return forward.Progress{Connected: true, Sent: true} }
func (s *still) Tunnel() (io.ReadWriteCloser, error) { return nil, io.ErrClosedPipe }
func (s *still) Close()                              {}

type stillBody struct{ done bool }

func (b *stillBody) Read(p []byte) (int, error) {
	b.done = true
	return copy(p, "hello"), io.EOF
}
func (*stillBody) Trailer() []forward.Field { return nil }
func (*stillBody) Rewind() error            { return nil }
func (*stillBody) Rewindable() bool         { return false }

// deaf is a client that takes everything.
type deaf struct{}

func (deaf) Inform(int, []forward.Field) error      { return nil }
func (deaf) Head(int, []forward.Field, int64) error { return nil }
func (deaf) Write([]byte) error                     { return nil }
func (deaf) End([]forward.Field) error              { return nil }
func (deaf) Abort()                                 {}
func (deaf) Tunnel() (io.ReadWriteCloser, error)    { return nil, io.ErrClosedPipe }

// quiet is a world with such an engine.
type quiet struct {
	*world
	engine *still
	up     Upstream
}

func (q *quiet) Upstream(string) *Upstream   { return &q.up }
func (q *quiet) Upstrand(string) *Upstrand   { return nil }
func (q *quiet) Opener(*Wire) forward.Opener { return q.engine }

func newQuiet(t testing.TB, conf string) *quiet {
	w := newWorld(t, conf)
	field := func(name, value string) forward.Field { return forward.Field{Name: []byte(name), Value: []byte(value)} }
	t.Cleanup(w.site.Close)
	return &quiet{w, &still{fields: []forward.Field{field("Content-Type", "text/plain"), field("Content-Length", "5"), field("X-A", "b"), field("Server", "s")}},
		Upstream{Name: "u", Group: w.group}}
}

func plainRequest() *forward.Request {
	return requestOf("GET /a/b/c?d=e", "User-Agent: bench", "Accept: */*", "Accept-Encoding: gzip", "Cookie: a=b")
}

var proxiedShapes = []struct {
	name, conf string
	allocs     float64
}{
	{"plain", `server { listen 127.0.0.1:8080; location / { proxy_pass http://u; } }`, 0},
	{"usual", `server { listen 127.0.0.1:8080; location / { proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr;
		proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme; add_header X-Frame-Options DENY; proxy_pass http://u; } }`, 0},
	{"uri part", `server { listen 127.0.0.1:8080; location /a/ { proxy_pass http://u/x/; } }`, 0},
	{"logged", `access_log DIR/access.log combined buffer=64k flush=1s; server { listen 127.0.0.1:8080; location / { proxy_pass http://u; } }`, 0},
	{"logged at length", `log_format all '$remote_addr $remote_port "$request" $status $request_time $msec $time_iso8601 $bytes_sent $request_length '
		'$upstream_addr $upstream_status $upstream_connect_time $upstream_header_time $upstream_response_time $upstream_response_length $connection';
		access_log DIR/access.log all; server { listen 127.0.0.1:8080; location / { proxy_pass http://u; } }`, 0},
	{"variables", `map $http_cookie $kind { default a; "a=b" b; } server { listen 127.0.0.1:8080; set $to u; location / {
		proxy_set_header X-Kind "$kind of $uri"; add_header X-Took $request_time; proxy_pass http://$to; } }`, 0},
}

// TestProxiedAllocations: neither a plain proxied request allocates anything here, nor a usual one with its log.
func TestProxiedAllocations(t *testing.T) {
	if racing {
		t.Skip("the race detector makes pools forget")
	}
	for _, tc := range proxiedShapes {
		q := newQuiet(t, strings.ReplaceAll(tc.conf, "DIR", t.TempDir()))
		r := plainRequest()
		if n := testing.AllocsPerRun(200, func() { q.site.Handle(context.Background(), q, r, deaf{}) }); n > tc.allocs {
			t.Errorf("%s: %v allocations, want %v at most", tc.name, n, tc.allocs)
		}
	}
}

func BenchmarkProxied(b *testing.B) {
	for _, tc := range proxiedShapes {
		b.Run(tc.name, func(b *testing.B) {
			q := newQuiet(b, strings.ReplaceAll(tc.conf, "DIR", b.TempDir()))
			r := plainRequest()
			b.ReportAllocs()
			for b.Loop() {
				q.site.Handle(context.Background(), q, r, deaf{})
			}
		})
	}
}
