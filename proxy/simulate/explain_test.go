package simulate

import (
	"bytes"
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

const shop = `
upstream app { server a weight=2; server b backup; server c down; }
upstream users { ip_hash; server u1; server u2; server u3; }
server {
    listen 80;
    server_name shop.test;
    location / { proxy_pass http://app; }
    location /old { return 301 /new; }
    location ~ ^/users/(?<id>\d+)$ { proxy_set_header X-User $id; proxy_pass http://users/u?id=$id; }
}
server { listen 80; server_name other.test; return 404; }
`

func TestExplain(t *testing.T) {
	for name, c := range map[string]struct {
		ask  Ask
		want []string
		not  []string
	}{
		"server, location, upstream and candidates": {
			Ask{Target: "/x", Host: "shop.test"},
			[]string{"GET /x of host shop.test from 127.0.0.1", "shop.test  (test.conf:4)", "(test.conf:7)", "upstream app",
				"* a", "weight 2", "c ", "down", "goes to a (240.0.0.1:80) as GET /x"}, nil,
		},
		"a redirect goes nowhere": {
			Ask{Target: "/old", Host: "shop.test"},
			[]string{"(test.conf:8)", "goes nowhere\nanswered 301 here", "Location: "}, []string{"pick in"},
		},
		"a pinned address": {
			Ask{Method: "POST", Target: "/users/7", Host: "shop.test", Client: netip.MustParseAddr("10.1.2.3")},
			[]string{"from 10.1.2.3", "ip_hash", "as POST /u?id=7"}, nil,
		},
		"another host": {
			Ask{Target: "/", Host: "other.test", Fields: []forward.Field{field("X-A", "1")}},
			[]string{"other.test", "goes nowhere\nanswered 404 here"}, []string{"pick in"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Explain(context.Background(), &out, file(t, shop), c.ask); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not told in:\n%s", want, out.String())
				}
			}
			for _, not := range c.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("%q is told in:\n%s", not, out.String())
				}
			}
		})
	}
}

const ring = `
upstream a { server a1; server a2; }
upstream b { server b1; }
upstream c { server c1; }
upstrand ring { upstream a blacklist_interval=10s; upstream b; upstream c backup; next_upstream_statuses error 5xx; }
server { listen 80; location / { proxy_pass http://$upstrand_ring; } }
`

// What an error_page puts in the place of an answer is told, and last what the client gets.
func TestExplainTellsErrorPages(t *testing.T) {
	conf := `upstream u { server a; } upstream v { server b; }
server { listen 80; proxy_intercept_errors on; rewrite ^/q\.(\d+)$ /page; error_page 500 502 503 =503 /sorry; error_page 504 @other;
location / { proxy_pass http://u; } location = /sorry { return 503 sorry; } location @other { proxy_pass http://v; } }`
	for name, c := range map[string]struct {
		server, want string
	}{
		"refused": {"a refuse", "goes to a (240.0.0.1:80): refused\nerror_page 502 /sorry\n"},
		"503":     {"a status:503", "goes to a (240.0.0.1:80) as GET /page: 503\nerror_page 503 /sorry\n"},
		"another": {"a status:504", "goes to b (240.0.0.2:80) as GET /page: 200\nanswered 504 by error_page 504 @other, with what b answered\n"},
	} {
		var out bytes.Buffer
		if err := Explain(context.Background(), &out, file(t, conf), Ask{Target: "/q.7", Servers: []string{c.server}}); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		if !strings.Contains(got, c.want) || !strings.Contains(got, `rewrite ^/q\.(\d+)$ /page;`) {
			t.Errorf("%s: %q is not told in:\n%s", name, c.want, got)
		}
		if last := "answered 503 here, by error_page 50"; name != "another" && !strings.Contains(got[strings.LastIndex(got, "return "):], last) {
			t.Errorf("%s: the end is not %q in:\n%s", name, last, got)
		}
	}
}

// A walk is told in its order, stop by stop.
func TestExplainTellsAWalk(t *testing.T) {
	for name, c := range map[string]struct {
		ask  Ask
		want []string
	}{
		"all are well": {Ask{Target: "/"},
			[]string{"ring: begins at a: it is its turn", "pick in upstream a", "goes to a1 (240.0.0.1:80) as GET /: 200\n",
				"ring: a came to 200, which is the answer: next_upstream_statuses does not list it", "answered 200 by a1"}},
		"on to the backup": {Ask{Target: "/", Servers: []string{"a1 a2 refuse", "b1 status:503"}},
			[]string{"ring: begins at a", "pick in upstream a", "goes to a1 (240.0.0.1:80): refused", "pick in upstream a", "goes to a2 (240.0.0.2:80): refused", "ring: a came to an error (502), which is listed: on to b", "pick in upstream b",
				"goes to b1 (240.0.0.3:80) as GET /: 503", "ring: b came to 503, which is listed: on to c", "pick in upstream c", "goes to c1 ",
				"ring: c came to 200, which is the answer", "answered 200 by c1"}},
		"a POST stays": {Ask{Method: "POST", Target: "/", Servers: []string{"a1 a2 status:500"}},
			[]string{"ring: a came to 500, which is the answer: the method is not repeated (non_idempotent is not listed)", "answered 500"}},
		"nobody is left": {Ask{Target: "/", Servers: []string{"a1 a2 b1 c1 refuse"}},
			[]string{"on to b", "on to c", "ring: c came to an error (502), which is the answer: no other upstream is left", "answered 502 here"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Explain(context.Background(), &out, file(t, ring), c.ask); err != nil {
				t.Fatal(err)
			}
			rest := out.String()
			for _, want := range c.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%q is not told, or not there, in:\n%s", want, out.String())
				}
				rest = after
			}
		})
	}
	for line, want := range map[string]string{"x refuse": "no server x", "a1 explode": "explode", "a1": "want SERVER... BEHAVIOUR", `"a`: "quotation"} {
		err := Explain(context.Background(), &bytes.Buffer{}, file(t, ring), Ask{Target: "/", Servers: []string{line}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestExplainRefusesWhatIsNoRequest(t *testing.T) {
	for name, ask := range map[string]Ask{
		"no target":     {},
		"no path":       {Target: "x"},
		"blank":         {Target: "/a b"},
		"broken method": {Method: "G T", Target: "/"},
		"broken header": {Target: "/", Fields: []forward.Field{field("A B", "c")}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Explain(context.Background(), &bytes.Buffer{}, file(t, shop), ask); err == nil {
				t.Error("it was taken")
			}
		})
	}
}
