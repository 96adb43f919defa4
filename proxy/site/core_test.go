package site

import (
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/forward"
)

// typed is the answer's status and Content-Type.
func (w *world) typed(ask string) string {
	c := &collector{}
	w.site.Handle(w.t.Context(), w, requestOf(ask), c)
	return fmt.Sprintf("%d %s", c.status, forward.Get(c.fields, "Content-Type"))
}

func TestContentTypes(t *testing.T) {
	w := newWorld(t, `default_type application/octet-stream; types { text/html html HTM; application/json json; }
		server { listen 127.0.0.1:8080;
			location / { return 200 x; }
			location /own { types { text/x-own html; } default_type ""; return 200 x; }
			location /none { types { } default_type text/plain; return 200 x; }
			location /r { rewrite ^/r(.*) /a.json; return 200 x; }
			location /404 { return 404; }
			location /204 { return 204; }
		}`)
	for ask, want := range map[string]string{
		"/": "200 application/octet-stream", "/a.html": "200 text/html", "/a.htm": "200 text/html", "/a.HTML": "200 text/html", "/a.b/c": "200 application/octet-stream", "/.html": "200 application/octet-stream",
		"/a.json?x.html": "200 application/json", "/own/a.html": "200 text/x-own", "/own/a.json": "200 ", "/none/a.html": "200 text/plain", "/r/x": "200 application/json", "/404/a.json": "404 text/html", "/204/a.html": "204 ",
	} {
		if got := w.typed("GET " + ask); got != want {
			t.Errorf("%s: %s, want %s", ask, got, want)
		}
	}
}

func TestEcho(t *testing.T) {
	w := newWorld(t, `server { listen 127.0.0.1:8080;
		location /a { echo a $arg_x; echo -n "b  c"; echo_status 202; }
		location /b { echo; location /b/c { } } }`)
	for ask, want := range map[string]string{"GET /a?x=1": "202 | a 1\nb  c", "GET /b": "200 | \n", "GET /b/c": "404 | <page>"} {
		if got := w.ask(ask); got != want {
			t.Errorf("%s: %q, want %q", ask, got, want)
		}
	}
}

// TestPagesFromFiles: an exact location may name a single file, which is read once; without it our own page is given for
// the status that led there.
func TestPagesFromFiles(t *testing.T) {
	read := func(name string) ([]byte, error) {
		if name == "/srv/50x.html" || name == "/etc/nginx/html/rel.html" {
			return []byte("from " + name), nil
		}
		return nil, fs.ErrNotExist
	}
	exact := func(line int, path, root string) *topology.Node {
		return block(node(line, "location", "=", path), node(line, "root", root))
	}
	s, faults := Compile([]*topology.Node{block(node(1, "server"), node(2, "error_page", "503", "504", "/50x.html"), node(3, "error_page", "502", "/gone.html"),
		exact(4, "/50x.html", "/srv"), exact(5, "/gone.html", "/srv"), exact(6, "/rel.html", "html"),
		block(node(7, "location", "/s"), node(7, "return", "503")), block(node(8, "location", "/g"), node(8, "return", "502")))}, Options{ReadFile: read})
	for _, f := range faults {
		t.Error(f.Error())
	}
	w := &world{t: t, site: s}
	for ask, want := range map[string]string{
		"GET /s": "503 | from /srv/50x.html", "GET /50x.html": "200 | from /srv/50x.html", "GET /g": "502 | <page>", "GET /gone.html": "404 | <page>", "GET /rel.html": "200 | from /etc/nginx/html/rel.html",
		"POST /50x.html": "405 | <page>", "HEAD /50x.html": "200",
	} {
		if got := w.ask(ask); got != want {
			t.Errorf("%s: %s, want %s", ask, got, want)
		}
	}
}

// TestListens: the most exact address decides, then all addresses of the family on the port.
func TestListens(t *testing.T) {
	w := newWorld(t, `
		server { listen 80; location / { return 200 any; } }
		server { listen 10.0.0.1:80 reuseport backlog=99; listen [::]:80; location / { return 200 one; } }
		server { listen 10.0.0.1:80 default_server; listen 8080 deferred; listen [::1]:81 ipv6only=off; location / { return 200 "two $server_addr $server_port"; } }
		server { listen *:8080; server_name x; location / { return 200 x; } }
		server { listen 10.0.0.3; location / { return 200 three; } }`)
	for local, want := range map[string]string{
		"10.0.0.1:80": "two 10.0.0.1 80", "10.0.0.2:80": "any", "[fe80::1]:80": "one", "[::ffff:10.0.0.1]:80": "two 10.0.0.1 80", "1.2.3.4:8080": "two 1.2.3.4 8080", "[::1]:81": "two ::1 81", "10.0.0.3:80": "three", "1.2.3.4:99": "any",
	} {
		r := requestOf("GET /")
		r.Local = netip.MustParseAddrPort(local)
		c := &collector{}
		w.site.Handle(t.Context(), w, r, c)
		if got := c.body.String(); got != want {
			t.Errorf("%s: %q, want %q", local, got, want)
		}
	}
	want := "0.0.0.0:80 0 false true; 10.0.0.1:80 99 true true; [::]:80 0 false true; 0.0.0.0:8080 0 false true; [::1]:81 0 false false; 10.0.0.3:80 0 false true; "
	got := ""
	for _, l := range w.site.Listens() {
		got += fmt.Sprintln(l.Addr, l.Backlog, l.ReusePort, l.V6Only)
	}
	if got = strings.ReplaceAll(got, "\n", "; "); got != want {
		t.Errorf("%s", got)
	}
}

// TestConnectionVariables are those that only an engine knows.
func TestConnectionVariables(t *testing.T) {
	w := newWorld(t, `server { listen 127.0.0.1:8080; location / { return 200 "$connection $connection_requests $request_time $msec $request_length"; } }`)
	r := requestOf("GET /", "A: b")
	r.Connection, r.Served = 7, 3
	c := &collector{}
	w.site.Handle(t.Context(), w, r, c)
	if got, want := c.body.String(), "7 3 0.000 1796032800.000 49"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestXAccel: only the core's half, which path a backend's word leads to.
func TestXAccel(t *testing.T) {
	for to, want := range map[string]string{
		"/a%20b?c=%20": "/a b|c=%20", "/../a": "404", "/a/..": "404", "/a/..b": "/a/..b|", "": "404", "?x": "404", "@n": "@n", "/%2e%2e/x": "404", "/a%zz": "404",
	} {
		r := &request{place: place{method: []byte("POST")}}
		o := r.xaccel(to)
		got := ""
		if o.to != nil {
			got = o.to.to + "|" + o.to.args
		}
		switch o.what {
		case failed:
			got = fmt.Sprint(o.status)
		case named:
			got = o.to.to
		}
		if got != want || o.what == redirected != (string(r.method) == "GET") {
			t.Errorf("%q: %s (%s), want %s", to, got, r.method, want)
		}
	}
}

func TestBadRequests(t *testing.T) {
	w := newWorld(t, `server { listen 127.0.0.1:8080; error_page 400 =200 /e; location / { return 200 $uri; } }`)
	invalid := requestOf("GET /")
	invalid.Invalid = "no"
	long := requestOf("GET /")
	long.Invalid, long.Refuse = "too long", 414
	for want, r := range map[string]*forward.Request{
		"200 | /e": invalid, "414 | <page>": long, "405 | <page>": requestOf("CONNECT a:1"),
	} {
		c := &collector{}
		w.site.Handle(t.Context(), w, r, c)
		if got := c.line(); got != want {
			t.Errorf("%s %s: %s, want %s", r.Method, r.Invalid, got, want)
		}
	}
	if got := w.ask("OPTIONS *"); got != "200 | /e" {
		t.Error(got)
	}
}
