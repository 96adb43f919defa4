package site

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/dialect"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/accesslog"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/upstrand"
)

// troupe is a configuration with its upstreams, whose peers play what the test says, on a clock that the plays move.
type troupe struct {
	t      *testing.T
	site   *Site
	groups map[string]*Upstream
	walks  map[string]*Upstrand
	plays  map[string]string // by the last digits of the port: ok, refuse, close, hang, status:N, cut, fields:A=b|C=d
	now    time.Time
	logs   bytes.Buffer
	wires  []Wire
	tries  []string // what was sent: peer METHOD TARGET [HOST X-UP] [BODY]
	heads  bool     // with HOST and X-UP
}

func newTroupe(t *testing.T, text string) *troupe {
	t.Helper()
	name := filepath.Join(t.TempDir(), "test.conf")
	if err := os.WriteFile(name, []byte("http {\n"+text+"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, faults := dialect.Read(name, dialect.Options{})
	expanded, problems := topology.Expand(doc.Config, topology.ExpandOptions{Strict: true})
	for _, p := range problems {
		t.Error(p.Error())
	}
	w := &troupe{t: t, groups: map[string]*Upstream{}, plays: map[string]string{}, now: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)}
	for _, g := range expanded.Upstreams {
		w.add(g.Name, g, specOf(g))
	}
	w.addStrands(expanded.Upstrands)
	files := &accesslog.Files{Now: true, Opener: func(string) (io.WriteCloser, error) { return nopCloser{&w.logs}, nil }}
	s, more := Compile(doc.Site, Options{Upstreams: func(name string) bool { return w.groups[name] != nil },
		Upstrands: func(name string) bool { return w.walks[name] != nil }, Groups: expanded.Upstreams, Logs: files})
	for _, f := range append(faults, more...) {
		t.Error(f.Error())
	}
	if t.Failed() {
		t.FailNow()
	}
	for _, h := range s.Hosts() {
		w.add(h, nil, balance.Spec{Servers: []balance.Server{{Key: balance.Key{ID: h}, Addr: h}}})
	}
	w.site = s
	t.Cleanup(s.Close)
	return w
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func specOf(g *topology.Group) balance.Spec {
	spec := balance.Spec{Method: balance.MethodSpec{Name: g.Method.Name, Consistent: g.Method.Consistent}}
	if g.Sticky != nil {
		spec.Sticky = balance.StickySpec{Kind: g.Sticky.Kind}
	}
	for _, p := range g.Peers {
		spec.Servers = append(spec.Servers, balance.Server{Key: balance.Key{ID: p.Key.Server, Backup: p.Backup}, Addr: p.Addr,
			Weight: p.Weight, MaxFails: p.MaxFails, FailTimeout: p.FailTimeout, Down: p.Down, Text: p.Text, Route: p.Route})
	}
	return spec
}

func (w *troupe) add(name string, g *topology.Group, spec balance.Spec) {
	group, err := balance.NewGroup(name, balance.Env{Clock: w.Now}, spec)
	if err != nil {
		w.t.Fatal(err)
	}
	w.groups[name] = &Upstream{Name: name, Group: group, Spec: g}
}

func (w *troupe) addStrands(strands []*topology.Strand) {
	w.walks = map[string]*Upstrand{}
	for _, s := range strands {
		u := &Upstrand{Name: s.Name, State: upstrand.NewState(s.Name, upstrand.Env{})}
		spec := upstrand.Spec{PerRequest: s.PerRequest, NonIdempotent: s.NonIdempotent, Timeout: s.NextTimeout}
		spec.Next, _, _ = upstrand.ParseStatuses(s.NextStatuses)
		for _, m := range s.Members {
			up := w.groups[m.Upstream]
			spec.Members = append(spec.Members, upstrand.Member{Name: m.Upstream, Backup: m.Backup, Blacklist: m.Blacklist, Group: up.Group, Link: up})
		}
		u.State.Swap(spec)
		for _, i := range s.Intercepts {
			statuses, _, _ := upstrand.ParseStatuses(i.Statuses)
			u.Intercepts = append(u.Intercepts, Intercept{statuses, i.URI})
		}
		w.walks[s.Name] = u
	}
}

func (w *troupe) Upstream(name string) *Upstream { return w.groups[name] }
func (w *troupe) Upstrand(name string) *Upstrand { return w.walks[name] }
func (w *troupe) Now() int64                     { return w.now.UnixNano() }
func (w *troupe) Opener(wire *Wire) forward.Opener {
	w.wires = append(w.wires, *wire)
	return w
}

func (w *troupe) Open(_ context.Context, p *balance.Peer, _ bool) forward.Backend {
	play := w.plays[p.Addr()[len(p.Addr())-1:]]
	return &actor{troupe: w, peer: p, play: play}
}

// ask serves a request and gives what the client got.
func (w *troupe) ask(line string, fields ...string) *collector {
	w.t.Helper()
	c := &collector{}
	w.site.Handle(context.Background(), w, requestOf(line, fields...), c)
	return c
}

// logged is what was written into access logs since it was last asked.
func (w *troupe) logged() string {
	defer w.logs.Reset()
	return strings.TrimSuffix(w.logs.String(), "\n")
}

// actor is an attempt. A connection takes 1 ms, the head 20 ms, the body 300 ms.
type actor struct {
	troupe *troupe
	peer   *balance.Peer
	play   string
	fields []forward.Field
	body   string
}

func (a *actor) pass(d time.Duration) { a.troupe.now = a.troupe.now.Add(d) }

func (a *actor) Send(r *forward.Request) error {
	if a.play == "refuse" {
		return &forward.Error{Class: forward.OnError, Err: errors.New("refused")}
	}
	a.pass(time.Millisecond)
	body := ""
	if r.Body != nil {
		all, err := io.ReadAll(r.Body)
		if err != nil {
			return &forward.Error{Class: forward.ClientBody, Err: err}
		}
		body = " " + string(all)
	}
	a.troupe.tries = append(a.troupe.tries, a.peer.Addr()[len(a.peer.Addr())-1:]+" "+string(r.Method)+" "+string(r.Target)+a.head(r)+body)
	switch a.play {
	case "close":
		return &forward.Error{Class: forward.OnError, Err: errors.New("closed")}
	case "hang":
		a.pass(time.Minute)
		return &forward.Error{Class: forward.OnTimeout, Err: errors.New("timeout")}
	}
	return nil
}

func (a *actor) head(r *forward.Request) string {
	if !a.troupe.heads {
		return ""
	}
	return " " + string(r.Authority) + " " + string(forward.Get(r.Fields, "X-Up"))
}

func (a *actor) Head() (int, []forward.Field, error) {
	a.pass(20 * time.Millisecond)
	status := 200
	if code, ok := strings.CutPrefix(a.play, "status:"); ok {
		status, _ = strconv.Atoi(code)
	}
	if list, ok := strings.CutPrefix(a.play, "fields:"); ok {
		for _, f := range strings.Split(list, "|") {
			name, value, _ := strings.Cut(f, "=")
			a.fields = append(a.fields, forward.Field{Name: []byte(name), Value: []byte(value)})
		}
	}
	a.body = "from " + a.peer.Addr()
	if status == 204 {
		a.body = ""
	}
	return status, append(a.fields, forward.Field{Name: nameContentLength, Value: []byte(strconv.Itoa(len(a.body)))}), nil
}

func (a *actor) Body() forward.Source {
	a.pass(300 * time.Millisecond)
	if a.play == "cut" {
		return cutBody{bodyOf(a.body)}
	}
	return bodyOf(a.body)
}

func (a *actor) Sent() forward.Progress {
	return forward.Progress{Connected: a.play != "refuse", Connect: time.Millisecond, Sent: a.play != "refuse", Out: 100, In: 200}
}
func (a *actor) Tunnel() (io.ReadWriteCloser, error) { return nil, errors.New("no tunnel") }
func (a *actor) Close()                              {}

// cutBody ends before its end.
type cutBody struct{ forward.Source }

func (c cutBody) Read(p []byte) (int, error) {
	n, err := c.Source.Read(p[:min(4, len(p))])
	if err == nil {
		err = &forward.Error{Class: forward.OnError, Err: io.ErrUnexpectedEOF}
	}
	return n, err
}

const threePeers = `upstream u { server 10.0.0.1:9001 max_fails=0; server 10.0.0.2:9002 max_fails=0; server 10.0.0.3:9003 max_fails=0; }
	upstream v { server 10.0.0.1:9005; }
	upstream none { server 10.0.0.1:9001 down; server 10.0.0.1:9002 down; }
	`

// TestUpstreamVariables holds what nginx logs for such attempts.
func TestUpstreamVariables(t *testing.T) {
	conf := threePeers + `
	log_format l '$upstream_addr|$upstream_status|$upstream_connect_time|$upstream_header_time|$upstream_response_time|$upstream_response_length|$upstream_bytes_sent|$upstream_bytes_received|$status|$body_bytes_sent|$upstream_http_x_a|$upstream_cookie_k|$request_completion|$request_time|$sent_http_x_a|$upstream_cache_status|$proxy_host:$proxy_port';
	access_log /l l;
	server { listen 127.0.0.1:8080;
		location / { proxy_pass http://u; }
		location /two { proxy_next_upstream error timeout http_404; proxy_next_upstream_tries 2; proxy_pass http://u; }
		location /none { proxy_pass http://none; }
		location /local { return 200 x; }
		location /hooked { proxy_intercept_errors on; error_page 404 502 = @second; proxy_pass http://u; }
		location @second { proxy_pass http://v; }
		location /hidden { proxy_hide_header X-A; proxy_pass http://u; }
		location /off { access_log off; proxy_pass http://u; }
		location /when { access_log /l l if=$arg_log; proxy_pass http://u; }
	}`
	for _, tc := range []struct {
		name  string
		ask   string
		plays map[string]string
		want  string
	}{
		{"answered", "GET /", nil, "10.0.0.1:9001|200|0.001|0.021|0.321|18|100|200|200|18|-|-|OK|0.321|-|-|u:80"},
		{"next peer", "GET /", map[string]string{"1": "refuse"}, "10.0.0.1:9001, 10.0.0.2:9002|502, 200|-, 0.001|-, 0.021|0.000, 0.321|0, 18|100, 100|200, 200|200|18|-|-|OK|0.321|-|-|u:80"},
		{"timeout", "GET /two", map[string]string{"1": "hang", "2": "hang"}, "10.0.0.1:9001, 10.0.0.2:9002|504, 504|0.001, 0.001|-, -|60.001, 60.001|0, 0|100, 100|200, 200|504|{page}|-|-|OK|120.002|-|-|u:80"},
		{"a status is left", "GET /two", map[string]string{"1": "status:404"}, "10.0.0.1:9001, 10.0.0.2:9002|404, 200|0.001, 0.001|0.021, 0.021|0.021, 0.321|0, 18|100, 100|200, 200|200|18|-|-|OK|0.342|-|-|u:80"},
		{"nobody", "GET /none", nil, "none|502|-|-|0.000|0|0|0|502|{page}|-|-|OK|0.000|-|-|none:80"},
		{"no upstream", "GET /local", nil, "-|-|-|-|-|-|-|-|200|1|-|-|OK|0.000|-|-|-:-"},
		{"two rounds", "GET /hooked", map[string]string{"1": "status:404"}, "10.0.0.1:9001 : 10.0.0.1:9005|404 : 200|0.001 : 0.001|0.021 : 0.021|0.021 : 0.321|0 : 18|100 : 100|200 : 200|200|18|-|-|OK|0.342|-|-|v:80"},
		{"fields", "GET /", map[string]string{"1": "fields:X-A=1|X-A=2|Set-Cookie=j=1|Set-Cookie=k=2; Path=/"}, "10.0.0.1:9001|200|0.001|0.021|0.321|18|100|200|200|18|1, 2|2|OK|0.321|1, 2|-|u:80"},
		{"hidden field", "GET /hidden", map[string]string{"1": "fields:X-A=1"}, "10.0.0.1:9001|200|0.001|0.021|0.321|18|100|200|200|18|1|-|OK|0.321|-|-|u:80"},
		{"cut", "GET /", map[string]string{"1": "cut"}, "10.0.0.1:9001|200|0.001|0.021|0.321|4|100|200|200|4|-|-|-|0.321|-|-|u:80"},
		{"off", "GET /off", nil, ""},
		{"condition not met", "GET /when?log=0", nil, ""},
		{"condition met", "GET /when?log=1", nil, "10.0.0.1:9001|200|0.001|0.021|0.321|18|100|200|200|18|-|-|OK|0.321|-|-|u:80"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newTroupe(t, conf)
			for k, v := range tc.plays {
				w.plays[k] = v
			}
			c := w.ask(tc.ask)
			want := strings.Replace(tc.want, "{page}", strconv.Itoa(c.body.Len()), 1)
			if got := w.logged(); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestLogFormats(t *testing.T) {
	w := newTroupe(t, threePeers+`
	log_format j escape=json '{"uri":"$uri","agent":"$http_user_agent","none":"$http_none"}';
	log_format n escape=none '$uri $http_none';
	server { listen 127.0.0.1:8080;
		location / { access_log /l; return 200 text; }
		location /j { access_log /l j; return 200 text; }
		location /n { access_log /l n; access_log /l main; return 200 text; }
	}
	log_format main '$remote_addr';`)
	for _, tc := range []struct{ ask, want string }{
		{"GET /a%22", `127.0.0.1 - - [30/Nov/2026:10:00:00 +0000] "GET /a%22 HTTP/1.1" 200 4 "-" "me \x22x\x22 \xC3\xA9"`},
		{"GET /j%22%0a", `{"uri":"/j\"\n","agent":"me \"x\" é","none":""}`},
		{"GET /n%22", "/n\" \n127.0.0.1"},
	} {
		w.ask(tc.ask, `User-Agent: me "x" é`)
		if got := w.logged(); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.ask, got, tc.want)
		}
	}
}

func TestStickyCookie(t *testing.T) {
	w := newTroupe(t, `upstream s { server 10.0.0.1:9001 route=a; server 10.0.0.2:9002 route=b; sticky cookie srv expires=1h domain=.$host path=/app httponly secure samesite=lax; }
	upstream r { server 10.0.0.1:9001 route=a; server 10.0.0.2:9002 route=b; sticky route $cookie_r $arg_r; }
	upstream h { hash $arg_k consistent; server 10.0.0.1:9001; server 10.0.0.2:9002; server 10.0.0.3:9003; }
	server { listen 127.0.0.1:8080;
		location / { proxy_pass http://s; }
		location /r { proxy_pass http://r; }
		location /h { proxy_pass http://h; }
	}`)
	want := "srv=a; expires=Mon, 30-Nov-26 11:00:00 GMT; max-age=3600; domain=.test.example; httponly; secure; samesite=lax; path=/app"
	c := w.ask("GET /")
	if got := string(fieldList(c.fields).get("Set-Cookie")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for range 3 {
		if c := w.ask("GET /", "Cookie: x=y; srv=b"); !strings.HasSuffix(c.body.String(), "9002") {
			t.Errorf("%s, want the peer of the cookie", c.body.String())
		}
		if c := w.ask("GET /r?r=b"); !strings.HasSuffix(c.body.String(), "9002") || fieldList(c.fields).get("Set-Cookie") != nil {
			t.Errorf("%s, want the peer of the route, and no cookie", c.body.String())
		}
	}
	w.plays["1"], w.plays["2"] = "refuse", "refuse"
	if c := w.ask("GET /", "Cookie: srv=b"); c.status != 502 || !strings.HasPrefix(string(fieldList(c.fields).get("Set-Cookie")), "srv=a;") {
		t.Errorf("%d %q, want the last one tried", c.status, fieldList(c.fields).get("Set-Cookie"))
	}
	w = newTroupe(t, `upstream h { hash $arg_k consistent; server 10.0.0.1:9001; server 10.0.0.2:9002; server 10.0.0.3:9003; }
	server { listen 127.0.0.1:8080; location / { proxy_pass http://h; } }`)
	first := w.ask("GET /?k=some").body.String()
	for i := range 4 {
		if got := w.ask("GET /?x=" + strconv.Itoa(i) + "&k=some").body.String(); got != first {
			t.Errorf("%s, then %s for the same key", first, got)
		}
	}
}

func TestRetriesOfRequestsWithABody(t *testing.T) {
	conf := threePeers + `server { listen 127.0.0.1:8080;
		location / { proxy_pass http://u; }
		location /non { proxy_next_upstream error non_idempotent; proxy_pass http://u; }
		location /off { proxy_next_upstream off; proxy_pass http://u; }
		location /many { proxy_next_upstream error http_500 http_502 http_503 http_504 http_403 http_404 http_429 invalid_header timeout; proxy_pass http://u; }
		location /time { proxy_next_upstream_timeout 30s; proxy_pass http://u; }
		location /only { proxy_next_upstream http_404 off; proxy_pass http://u; }
	}`
	for _, tc := range []struct {
		ask, play string
		status    int
		tries     string
	}{
		{"PUT /", "close", 200, "1 PUT / xx, 2 PUT / xx"},
		{"POST /", "close", 502, "1 POST / xx"},
		{"POST /", "refuse", 200, "2 POST / xx"},
		{"POST /non", "close", 200, "1 POST /non xx, 2 POST /non xx"},
		{"GET /off", "close", 502, "1 GET /off xx"},
		{"GET /only", "status:404", 404, "1 GET /only xx"},
		{"GET /many", "status:429", 200, "1 GET /many xx, 2 GET /many xx"},
		{"GET /many", "status:401", 401, "1 GET /many xx"},
		{"GET /time", "hang", 504, "1 GET /time xx"},
	} {
		w := newTroupe(t, conf)
		w.plays["1"] = tc.play
		c := w.ask(tc.ask, "Content-Length: 2")
		if got := strings.Join(w.tries, ", "); c.status != tc.status || got != tc.tries {
			t.Errorf("%s with %s: %d after %s; want %d after %s", tc.ask, tc.play, c.status, got, tc.status, tc.tries)
		}
	}
}

func TestWireOfALocation(t *testing.T) {
	w := newTroupe(t, threePeers+`proxy_read_timeout 7s;
	server { listen 127.0.0.1:8080;
		location / { proxy_pass http://u; proxy_connect_timeout 500ms; proxy_send_timeout 3; proxy_http_version 1.0; proxy_buffer_size 16k; }
		location /s { proxy_pass https://10.0.0.1:9443; proxy_ssl_server_name on; proxy_ssl_name some.example; proxy_ssl_protocols TLSv1.3; }
		location /v { set $to https://v; proxy_pass $to; }
		location /if { proxy_pass http://u; if ($arg_x) { set $y 1; } }
	}`)
	for _, ask := range []string{"GET /", "GET /s", "GET /v", "GET /if?x=1"} {
		if c := w.ask(ask); c.status != 200 {
			t.Errorf("%s: %d", ask, c.status)
		}
	}
	plain, tls, varied, inIf := w.wires[0], w.wires[1], w.wires[2], w.wires[3]
	if plain.Connect != 500*time.Millisecond || plain.Read != 7*time.Second || plain.Send != 3*time.Second || !plain.HTTP10 || plain.HeadMax != 16<<10 || plain.Scheme != "http" || plain.TLS != nil {
		t.Errorf("%+v", plain)
	}
	if tls.TLS == nil || tls.TLS.ServerName != "some.example" || tls.ServerName != "some.example" || tls.Scheme != "https" || !tls.TLS.InsecureSkipVerify || tls.TLS.MinVersion != 0x0304 {
		t.Errorf("%+v", tls)
	}
	if varied.TLS == nil || varied.Scheme != "https" || varied.ServerName != "" {
		t.Errorf("%+v", varied)
	}
	if inIf.Read != 7*time.Second || inIf.Connect != time.Minute {
		t.Errorf("%+v", inIf)
	}
	if got := strings.Join(w.site.Hosts(), ","); got != "10.0.0.1:9443" {
		t.Errorf("hosts %s", got)
	}
}

func TestClientLimits(t *testing.T) {
	w := newTroupe(t, threePeers+`keepalive_timeout 20s; server { listen 127.0.0.1:8080; client_header_timeout 5s; send_timeout 6s; client_body_timeout 7s; keepalive_requests 8;
		large_client_header_buffers 2 16k; keepalive_time 9m; location / { proxy_pass http://u; } }
		server { listen 127.0.0.1:8081; keepalive_timeout 0; return 204; }`)
	got := w.site.Client(netip.MustParseAddrPort("127.0.0.1:8080"))
	want := ClientLimits{Header: 5 * time.Second, Body: 7 * time.Second, Send: 6 * time.Second, Keepalive: 20 * time.Second, Age: 9 * time.Minute, Requests: 8, Line: 16 << 10, Lines: 32 << 10, Streams: 128}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := w.site.Client(netip.MustParseAddrPort("127.0.0.1:8081")).Keepalive; got != NoKeepalive {
		t.Errorf("keepalive %v", got)
	}
}
