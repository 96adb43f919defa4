package declared

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/upstrand/upstrand/confgen/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func texts(faults []topology.Fault) []string {
	var out []string
	for _, f := range faults {
		out = append(out, f.Error())
	}
	return out
}

func TestFilesAreOneSetInTheOrderOfTheirNames(t *testing.T) {
	a := File{"a", "upstream one { server 10.0.0.1:80; }\nupstrand s { upstream one; }\n"}
	b := File{"b", "upstream two { discover x; }\nserver { server_name h.test g.test; location /p { proxy_pass http://two; } location / { proxy_pass http://$upstrand_s; } }\n"}
	set := Read([]File{b, a})
	want := &topology.Config{
		Upstreams: []topology.Upstream{
			{Name: "one", Origin: topology.Declared, Directives: []topology.Directive{{"server", "10.0.0.1:80"}}},
			{Name: "two", Origin: topology.Declared, Rank: 2, Directives: []topology.Directive{{"discover", "x"}}},
		},
		Upstrands: []topology.Upstrand{{Name: "s", Origin: topology.Declared, Rank: 1, Directives: []topology.Directive{{"upstream", "one"}}}},
		Routes: []topology.Route{
			{Host: "g.test", Path: "/", Origin: topology.Declared, Upstrand: "s"}, {Host: "g.test", Path: "/p", Origin: topology.Declared, Upstream: "two"},
			{Host: "h.test", Path: "/", Origin: topology.Declared, Upstrand: "s"}, {Host: "h.test", Path: "/p", Origin: topology.Declared, Upstream: "two"},
		},
	}
	if diff := cmp.Diff(want, set.Config); diff != "" || set.Faults != nil || set.Warnings != nil {
		t.Errorf("%v %v\n%s", set.Faults, set.Warnings, diff)
	}
	if diff := cmp.Diff(set.Config, Read([]File{a, b}).Config); diff != "" {
		t.Errorf("the order in which files are given counts:\n%s", diff)
	}
	if err := set.Config.Validate(); err != nil {
		t.Error(err)
	}
}

func TestAProblemHasItsPlaceInItsFile(t *testing.T) {
	set := Read([]File{
		{"a", "upstream one { server 10.0.0.1:80; }\n"},
		{"b", "upstrand s {\n  upstream one;\n}\nupstream two {\n  server 10.0.0.2:80;\n  server 10.0.0.3:80;\n}\nserver {\n location /x { proxy_pass http://two; } }\n"},
	})
	for _, c := range []struct {
		p    topology.Problem
		want string
	}{
		{topology.Problem{Upstream: 0, Upstrand: -1, Line: 0, Reason: "r"}, "a:1: server: r"},
		{topology.Problem{Upstream: 1, Upstrand: -1, Line: 1, Reason: "r"}, "b:6: server: r"},
		{topology.Problem{Upstream: 1, Upstrand: -1, Line: -1, Reason: "r"}, "b:4: upstream: r"},
		{topology.Problem{Upstream: -1, Upstrand: 0, Line: 0, Reason: "r; want that"}, "b:2: upstream: r; allowed: that"},
		{topology.Problem{Upstream: 2, Upstrand: -1, Line: 0, Reason: "of a derived one"}, ""},
		{topology.Problem{Upstream: -1, Upstrand: 1, Line: 0, Reason: "of a derived one"}, ""},
		{topology.Problem{Upstream: -1, Upstrand: -1, Line: -1, Reason: "of a route"}, ""},
	} {
		f, ok := set.Fault(c.p)
		if ok != (c.want != "") || ok && f.Error() != c.want {
			t.Errorf("%+v: %v %q, want %q", c.p, ok, f.Error(), c.want)
		}
	}
	if f := set.RouteFault(set.Config.Routes[0], "r", ""); f.Error() != "b:9: location: r" {
		t.Error(f.Error())
	}
	if f := set.RouteFault(topology.Route{Path: "/derived"}, "r", ""); f.Reason != "route /derived: r" {
		t.Error(f.Reason)
	}
}

func TestRoutes(t *testing.T) {
	for in, want := range map[string]string{
		"location /a { proxy_pass http://u; }":                                    "/a → u ",
		"location /a/b/ { proxy_pass http://u; }":                                 "/a/b → u ",
		"location / { proxy_pass http://u; }":                                     "/ → u ",
		"server_name _; location /a { proxy_pass http://u; }":                     "/a → u ",
		"server_name A.Test.; location /a { proxy_pass http://u; }":               "a.test/a → u ",
		"server_name [2001:DB8::1] 10.0.0.1; location /a { proxy_pass http://u;}": "10.0.0.1/a → u 2001:db8::1/a → u ",
		"location /a { proxy_pass http://u@zone-a; }":                             "/a → u@zone-a ",
		"location /a { proxy_pass http://$upstrand_a-b@c; }":                      "/a → strand a-b@c ",
		"location /a { proxy_pass http://${upstrand_a}; }":                        "/a → strand a ",
		"location \"/a b\" { proxy_pass http://u; }":                              "/a b → u ",

		"":                                       "has no route",
		"server_name a;":                         "has no route",
		"location /a { }":                        "has no target",
		"location = /a { proxy_pass http://u; }": "no other kind of location",
		"location ~ ^/a { proxy_pass http://u; }":                                   "no other kind of location",
		"location ^~ /a { proxy_pass http://u; }":                                   "no other kind of location",
		"location @a { proxy_pass http://u; }":                                      "no other kind of location",
		"location /a/../b { proxy_pass http://u; }":                                 "would match none",
		"location /. { proxy_pass http://u; }":                                      "would match none",
		"location /a//b { proxy_pass http://u; }":                                   "would match none",
		"location /a { proxy_pass http://u/; }":                                     "has a URI part",
		"location /a { proxy_pass http://u; proxy_pass http://v; }":                 "is duplicate",
		"location /a { proxy_pass http://u$v; }":                                    "has a variable",
		"location /a { proxy_pass http://$upstrand_; }":                             "has a variable",
		"location /a { proxy_pass \"http://$upstrand_a}\"; }":                       "has a variable",
		"location /a { proxy_pass \"http://${upstrand_a\"; }":                       "has a variable",
		"location /a { proxy_pass http://${upstrand_}; }":                           "has a variable",
		"location /a { proxy_pass http://$upstrand_a$b; }":                          "has a variable",
		"location /a { proxy_pass https://u; }":                                     "names a scheme",
		"location /a { proxy_pass u; }":                                             "is no target",
		"location /a { proxy_pass http://; }":                                       "is no target",
		"location /a { proxy_pass http://u; proxy_read_timeout 1s; }":               "can't be declared: a route has",
		"location /a { return 204; }":                                               "can't be declared: a route has",
		"location /a { location /a/b { proxy_pass http://u; } }":                    "can't be declared: a route has",
		"listen 80; location /a { proxy_pass http://u; }":                           "where proxies listen",
		"rewrite a b; location /a { proxy_pass http://u; }":                         "can't be declared: a route has",
		"server_name *.a.test; location /a { proxy_pass http://u; }":                "is a wildcard",
		"server_name .a.test; location /a { proxy_pass http://u; }":                 "is a wildcard",
		"server_name ~^a; location /a { proxy_pass http://u; }":                     "is a regex",
		"server_name a:80; location /a { proxy_pass http://u; }":                    "is no name of a host",
		"server_name \"\"; location /a { proxy_pass http://u; }":                    "is no name of a host",
		"server_name a/b; location /a { proxy_pass http://u; }":                     "is no name of a host",
		"location /a { proxy_pass http://u; } location /a/ { proxy_pass http://v;}": "is declared at f:1 already",
		"resolver 10.0.0.1; location /a { proxy_pass http://u; }":                   "resolver in each upstream",
	} {
		set := Read([]File{{"f", "server { " + in + " }"}})
		var got strings.Builder
		for _, r := range set.Config.Routes {
			target := r.Upstream
			if r.Upstrand != "" {
				target = "strand " + r.Upstrand
			}
			fmt.Fprintf(&got, "%s%s → %s ", r.Host, r.Path, target)
		}
		if set.Faults != nil {
			got.Reset()
			got.WriteString(strings.Join(texts(set.Faults), " | "))
		}
		if (set.Faults == nil && got.String() != want) || !strings.Contains(got.String(), want) {
			t.Errorf("%s: %s, want %s", in, got.String(), want)
		}
	}
}

// A megabyte of names and locations would be billions of routes, or of duplicates.
func TestRoutesAreLimited(t *testing.T) {
	server := func(hosts, locations int, host string) string {
		var b strings.Builder
		b.WriteString("server { server_name")
		for i := range hosts {
			fmt.Fprintf(&b, " "+host, i)
		}
		b.WriteString(";\n")
		for i := range locations {
			fmt.Fprintf(&b, "location /%d { proxy_pass http://u; }\n", i)
		}
		return b.String() + "}\n"
	}
	set := Read([]File{{"a", server(MaxRoutes/100, 99, "h%d")}, {"b", server(MaxRoutes/100, 1, "g%d")}})
	if len(set.Faults) != 0 || len(set.Config.Routes) != MaxRoutes {
		t.Fatalf("at the limit: %v, %d routes", texts(set.Faults), len(set.Config.Routes))
	}
	for _, c := range []struct{ what, host string }{{"names", "h%d"}, {"one name many times", "h%.0d"}} {
		set = Read([]File{{"a", server(MaxRoutes, 500, c.host)}})
		if n := len(set.Config.Routes) + len(set.Faults); n != MaxRoutes+1 {
			t.Errorf("%s: %d routes and faults", c.what, n)
		}
		last := texts(set.Faults)[len(set.Faults)-1]
		if want := "a:3: location: is one route too many: each server_name counts with each location; allowed: 10000 routes in all files"; last != want {
			t.Errorf("%s: %s", c.what, last)
		}
	}
}

func TestNothingOutsideOfTheFilesIsRead(t *testing.T) {
	secret := t.TempDir() + "/secret.conf"
	if err := os.WriteFile(secret, []byte("upstream stolen { server 10.0.0.1:80; }"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"include " + secret + ";", "include " + secret[:len(secret)-5] + "*;", "include main;", "upstream a { include " + secret + "; }", "include mime.types;", "include a b;",
	} {
		set := Read([]File{{"main", text}, {"other", "upstream o { server 10.0.0.1:80; }"}})
		if len(set.Faults) != 1 || !strings.Contains(set.Faults[0].Error(), "main:1: include: a declared file includes nothing") || len(set.Config.Upstreams) > 2 {
			t.Errorf("%s: %v", text, texts(set.Faults))
		}
	}
}

func TestWhatIsNoTopologyIsRefused(t *testing.T) {
	set := Read([]File{{"a", "log_format x '$host';\nupstream U { server 10.0.0.1:80; }\nupstrand s { upstream U; }\n"}, {"b", "upstream u { server 10.0.0.1:80; }\nupstrand S { upstream u; }\nworker_connections 10;\n"}})
	want := []string{
		"a:1: log_format: can't be declared: it is not part of a topology" + elsewhere + "; allowed: upstream, upstrand, server",
		`b:1: upstream: upstream "u" is declared at a:2 already`,
		`b:2: upstrand: upstrand "S" is declared at a:3 already`,
		"b:3: worker_connections: is not allowed in http; allowed: events",
	}
	if diff := cmp.Diff(want, texts(set.Faults)); diff != "" {
		t.Error(diff)
	}
	if set := Read(nil); set.Faults != nil || set.Config == nil {
		t.Errorf("of no files: %+v", set)
	}
	if set := Read([]File{{"empty", ""}, {"words", "# nothing\n"}}); set.Faults != nil || len(set.Config.Upstreams) != 0 {
		t.Errorf("of empty files: %v", set.Faults)
	}
}

// Whatever comes, what has no fault can be encoded.
func FuzzRead(f *testing.F) {
	f.Add("upstream a { server 10.0.0.1:80; } server { server_name x; location /a { proxy_pass http://a; } }")
	f.Add("upstrand s { upstream ~a; } server { location / { proxy_pass http://$upstrand_s; } }")
	f.Fuzz(func(t *testing.T, text string) {
		set := Read([]File{{"a", text}, {"b", "upstream b { server 10.0.0.1:80; }"}})
		if len(set.Faults) > 0 {
			return
		}
		for _, u := range set.Config.Upstreams {
			if _, err := topology.EncodeUpstream(u); err != nil {
				t.Error(err)
			}
		}
		for _, u := range set.Config.Upstrands {
			if _, err := topology.EncodeUpstrand(u); err != nil {
				t.Error(err)
			}
		}
		for _, r := range set.Config.Routes {
			if _, err := topology.EncodeRoute(r); err != nil {
				t.Error(err)
			}
		}
	})
}
