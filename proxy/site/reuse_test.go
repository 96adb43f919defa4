package site

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestRequestsLeaveNothing: whatever was served by the memory that a request is given, what it gets, logs and asks of
// backends is what it would be with memory of its own. The engine uses the bytes of requests again, too, and that of
// backends those of answers; clients leave, and handlers panic.
func TestRequestsLeaveNothing(t *testing.T) {
	own, shared := newReuse(t), newReuse(t)
	var memory any
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range 4000 {
		a := asked[dice.IntN(len(asked))]
		end := ""
		if dice.IntN(4) == 0 {
			end = ends[dice.IntN(len(ends))]
		}
		var fresh any = new(request)
		want, got := own.serve(a, end, &fresh), shared.serve(a, end, &memory)
		if got != want {
			t.Fatalf("%d: %v %s\ngot  %s\nwant %s", i, a, end, got, want)
		}
		if memory == nil {
			t.Fatal("the memory was not given back")
		}
	}
}

// The ends that a client can make of a request; panics are those of whatever serves it.
var ends = []string{"leaves before", "leaves at the head", "leaves in the body", "panics at the head", "panics in the body"}

var asked = [][]string{
	{"GET /set?x=one", "X-In: in1"}, {"GET /set"}, {"GET /set?x=three HTTP/1.0"}, {"GET /re/abc/def?q=1", "Cookie: c=cookie1"}, {"GET /re/x/"},
	{"GET /err?x=e", "X-In: in2"}, {"GET /accel"}, {"GET /gzip", "Accept-Encoding: gzip"}, {"GET /gzip"}, {"HEAD /gzip", "Accept-Encoding: gzip"},
	{"GET /conn"}, {"GET /rw/there%20is?y=2"}, {"POST /body", "Content-Length: 5"}, {"POST /body", "Content-Length: 50"}, {"GET /many"}, {"POST /many", "Content-Length: 3"},
	{"GET /walk"}, {"POST /walk", "Content-Length: 4"}, {"GET /named"}, {"GET /intercept"}, {"GET /sticky"}, {"GET /sticky", "Cookie: id=b"},
	{"GET /text?x=sent"}, {"GET /expires"}, {"GET /"}, {"HEAD /"}, {"GET /plain%2fpath//x/../y"}, {"GET /../up"}, {"CONNECT /"}, {"TRACE /"}, {"GET / bad_host:x"},
	{"GET /none"}, {"GET /cut"}, {"DELETE /nobody"}, {"GET /local?u=u"}, {"GET /local?u=v"},
	{"GET /", "Connection: close"}, {"GET /", "X-Keep: yes", "Connection: x-keep"}, {"GET /", "A: 1", "Host: h", "B: 2"}, {"POST /", "Content-Length: 3", "C: 3"},
	{"GET /set HTTP/1.0", "Connection: keep-alive"}, {"GET / HTTP/1.0", "Connection: keep-alive"}, {"GET /gzip HTTP/1.0", "Connection: keep-alive", "Accept-Encoding: gzip"},
	{"GET /set", "Connection: close"}, {"GET /up", "Connection: upgrade", "Upgrade: x"}, {"GET /chain"}, {"HEAD /chain"}, {"POST /chain", "Content-Length: 2"},
	{"GET /dir?a=b"}, {"GET /moved"}, {"GET /moved/far?x=y"}, {"GET /elsewhere"}, {"GET /heads"}, {"HEAD /heads"}, {"GET /none204"}, {"GET /always"}, {"HEAD /always"},
	{"GET /who", "X-Real-IP: 10.9.8.7"}, {"GET /who"}, {"GET /rate"}, {"GET /held"}, {"GET /held", "Connection: close"}, {"GET /stops"}, {"POST /stops", "Content-Length: 4"},
	{"GET /instead"}, {"GET /twice"}, {"GET /own?x=set"}, {"GET /own"}, {"GET /tried"}, {"GET /tried/then?x=one"}, {"GET /kept"}, {"GET /many", "traceparent: theirs", "tracestate: t", "A: 1"},
	{"GET /", "traceparent: theirs"}, {"GET /accel", "traceparent: theirs", "X-In: in3"}, {"GET /walk", "tracestate: theirs", "B: 2"}, {"GET /loop"},
}

const reuseConf = `log_format l '$request|$uri|$args|$1|$2|$a|$b|$status|$body_bytes_sent|$bytes_sent|$upstream_addr|$upstream_status|$upstream_response_time|'
		'$upstream_http_x_a|$upstream_cookie_k|$sent_http_x_b|$sent_http_set_cookie|$request_time|$limit_conn_status|$cookie_c|$http_x_in|$proxy_host|$m|$request_completion|$upstrand_addr|'
		'$remote_addr|$limit_req_status|$http_traceparent|$http_a|$upstream_http_server|$sent_http_server|$sent_http_connection|$upstream_response_length|$upstream_status';
	access_log /l l;
	limit_conn_zone $server_name zone=k:1m; limit_req_zone $host zone=r:1m rate=1r/s;
	map $arg_x $m { default none; one first; ~^(?<a>e.*) $a; }
	upstream u { server 127.0.0.1:1 max_fails=0; } upstream dead { server 127.0.0.1:2 max_fails=0; } upstream acc { server 127.0.0.1:3 max_fails=0; }
	upstream two { server 127.0.0.1:2 max_fails=0; server 127.0.0.1:4 max_fails=0; } upstream sick { server 127.0.0.1:5 max_fails=0; }
	upstream pair { sticky cookie id; server 127.0.0.1:1 route=a max_fails=0; server 127.0.0.1:4 route=b max_fails=0; } upstream cut { server 127.0.0.1:6 max_fails=0; }
	upstrand s { upstream sick; upstream two; upstream u; order per_request; next_upstream_statuses error timeout 5xx; }
	upstream up { server 127.0.0.1:7 max_fails=0; } upstream own { server 127.0.0.1:8 max_fails=0; } upstream empty { server 127.0.0.1:9 max_fails=0; }
	upstrand i { upstream sick; upstream dead; order per_request; next_upstream_statuses error; intercept_statuses 5xx /fallback?x=walk; }
	server { listen 127.0.0.1:8080; server_name reuse; proxy_next_upstream error timeout; add_header X-M $m;
		location /set { set $a "$arg_x-$http_x_in"; set $b $a$a; add_header X-B $b; return 200 "$a$b"; }
		location ~ ^/re/(?<a>[a-z]+)/(.*)$ { add_header X-B "$1 $a"; proxy_set_header X-Up "$2$cookie_c"; proxy_pass http://u/$2?$args; }
		location /err { error_page 502 /fallback?x=$arg_x; proxy_pass http://dead; }
		location /fallback { internal; return 200 "fallback $a $args"; }
		location /accel { proxy_pass http://acc; }
		location /gzip { gzip on; gzip_min_length 1; gzip_types *; proxy_pass http://u; }
		location /conn { limit_conn k 1; proxy_pass http://u; }
		location /rw { rewrite ^/rw/(.*)$ /set?x=$1 last; }
		location /body { client_max_body_size 10; proxy_pass http://u; }
		location /many { proxy_next_upstream error non_idempotent; proxy_pass http://two; }
		location /walk { proxy_pass http://$upstrand_s; }
		location /named { error_page 404 = @n; return 404; }
		location @n { set $b named; proxy_pass http://acc; proxy_ignore_headers X-Accel-Redirect; }
		location /intercept { proxy_intercept_errors on; error_page 503 /fallback; proxy_pass http://sick; }
		location /sticky { proxy_pass http://pair; }
		location /text { proxy_method PUT; proxy_set_body "body $arg_x"; proxy_pass http://u; }
		location /expires { expires 1h; charset utf-8; return 200 "then"; }
		location /none { return 444; }
		location /cut { proxy_pass http://cut; }
		location /nobody { limit_except GET { deny all; } proxy_pass http://u; }
		location /local { proxy_pass http://$arg_u; }
		location /up { proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_pass http://up; }
		location /chain { recursive_error_pages on; error_page 502 /chain2; error_page 404 =403 /fallback?x=chain; proxy_pass http://dead; }
		location /chain2 { recursive_error_pages on; error_page 404 =403 /fallback?x=chain; return 404; }
		location /dir/ { proxy_pass http://u; }
		location /moved { rewrite ^/moved/(.*)$ /to/$1 permanent; return 302 /from$uri?$arg_x; }
		location /elsewhere { error_page 404 =301 http://other.example/$uri; return 404; }
		location /heads { proxy_method HEAD; proxy_pass http://own; }
		location /none204 { proxy_pass http://empty; }
		location /always { add_header X-B "$a always" always; expires 1m; return 404; }
		location /who { set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP; allow 127.0.0.1; deny all; proxy_set_header X-Up $proxy_add_x_forwarded_for; proxy_pass http://u; }
		location /rate { limit_req zone=r nodelay; limit_req_status 429; error_page 429 /fallback?x=rate; proxy_pass http://u; }
		location /held { keepalive_timeout 0; proxy_pass http://u; }
		location /stops { proxy_set_header X-Up $upstream_addr; proxy_pass http://$upstrand_s; }
		location /instead { proxy_pass http://$upstrand_i; }
		location /twice { proxy_intercept_errors on; error_page 503 = @twice; proxy_pass http://sick; }
		location @twice { proxy_set_header X-Up $upstream_status; proxy_pass http://two; }
		location /own { proxy_pass_header Server; proxy_pass_header Date; add_header X-B $arg_x; gzip on; proxy_pass http://own; }
		location /tried { try_files $uri/none /set?x=tried; }
		location /kept { proxy_hide_header X-A; charset koi8-r; proxy_pass http://own/part; }
		location /loop { rewrite ^ /loop?x=$arg_x last; }
		location / { proxy_pass http://u; }
	}`

// reuse is a world whose engine and backends use their memory again.
type reuse struct{ *forgetting }

func newReuse(t *testing.T) *reuse {
	w := newTroupe(t, reuseConf)
	w.heads = true
	w.plays["2"], w.plays["3"], w.plays["5"], w.plays["6"] = "refuse", "fields:X-Accel-Redirect=/set?x=accel|X-A=first|Set-Cookie=k=v1", "status:503", "cut"
	w.plays["7"], w.plays["8"], w.plays["9"] = "status:101", "fields:Server=theirs|X-Accel-Charset=utf-8|Content-Type=text/html|Date=then|X-A=own|Location=http://own/x", "status:204"
	w.plays["4"] = "fields:X-A=fourth|Set-Cookie=k=v2"
	return &reuse{&forgetting{troupe: w}}
}

// serve gives all that can be known of a request.
func (w *reuse) serve(a []string, end string, memory *any) string {
	w.now = w.now.Truncate(time.Hour)
	w.tries, w.sent = w.tries[:0], w.sent[:0]
	in := requestOf(a[0], a[1:]...)
	in.Scratch = memory
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	if end == "leaves before" {
		leave()
	}
	c := &fickle{end: end}
	done := ""
	of := Served{Done: func(f Finished) {
		done = fmt.Sprintf("%d %d %s %v %s %s %d %v", f.Status, f.Bytes, f.Location, f.Remote, f.Exchange.Cause, f.Exchange.Upstream, f.Exchange.Attempts, f.Exchange.Err)
	}}
	if strings.Contains(strings.Join(a, " "), "trace") {
		of.Span = &changing{}
	}
	panicked := w.handle(ctx, in, c, &of)
	out := fmt.Sprintf("%v %q %v ended %v aborted %v panicked %v\n     tries %q\n     sent %q\n     log %q\n     done %s, %d %d %v",
		c.status, c.body.String(), fieldLines(c.fields), c.ended, c.aborted, panicked, w.tries, w.sent, w.logged(), done, of.Status, of.Bytes, of.Again)
	if panicked != nil && panicked != any(end) {
		w.t.Fatalf("%v %s: %v", a, end, panicked)
	}
	if n := w.open(); n != 0 || w.opened != w.released {
		w.t.Fatalf("%v %s: %d attempts are open, of %d backends %d were released", a, end, n, w.opened, w.released)
	}
	forget(in.Method, in.Target, in.Authority)
	for _, f := range in.Fields {
		forget(f.Name, f.Value)
	}
	return out
}

// open is how many attempts peers count.
func (w *reuse) open() (n int64) {
	for _, u := range w.groups {
		n += int64(u.Group.Open())
	}
	return n
}

func (w *reuse) handle(ctx context.Context, in *forward.Request, c *fickle, of *Served) (panicked any) {
	defer func() { panicked = recover() }()
	w.site.Continue(ctx, w.forgetting, in, c, of)
	return nil
}

func forget(all ...[]byte) {
	for _, b := range all {
		for i := range b {
			b[i] = '#'
		}
	}
}

// TestCapturesOfAnotherRequest: where nothing else is computed, too, what a match has left is gone with its request.
func TestCapturesOfAnotherRequest(t *testing.T) {
	w := newWorld(t, `server { listen 127.0.0.1:8080; location ~ ^/re/(.*)$ { return 204; } location / { return 200 "-$1-"; } }`)
	var memory any
	for _, target := range []string{"/re/old", "/"} {
		in, c := requestOf("GET "+target), &collector{}
		in.Scratch = &memory
		if w.site.Handle(t.Context(), w, in, c); target == "/" && c.body.String() != "--" {
			t.Errorf("%s", c.body.String())
		}
	}
}

// fickle is a client that does not wait for its answer's end.
type fickle struct {
	collector
	end string
}

var errLeft = errors.New("left")

func (c *fickle) at(where string) error {
	switch c.end {
	case "leaves " + where:
		return errLeft
	case "panics " + where:
		panic(c.end)
	}
	return nil
}

func (c *fickle) Head(status int, fields []forward.Field, length int64) error {
	if err := c.at("at the head"); err != nil {
		return err
	}
	return c.collector.Head(status, fields, length)
}

func (c *fickle) Write(b []byte) error {
	if err := c.at("in the body"); err != nil {
		return err
	}
	return c.collector.Write(b)
}

func (c *fickle) Finish(last []byte, trailer []forward.Field) error {
	if strings.HasSuffix(c.end, "in the body") {
		if err := c.at("in the body"); err != nil {
			return err
		}
	}
	_ = c.collector.Write(last)
	return c.End(trailer)
}
