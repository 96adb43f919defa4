package proxy

import (
	"strings"
	"testing"

	"github.com/upstrand/upstrand/confgen/topology"
)

func TestNormalise(t *testing.T) {
	for in, want := range map[string]string{
		"/":                "/",
		"/a/b":             "/a/b",
		"/a/b/":            "/a/b/",
		"/a?x=/../y":       "/a",
		"/a#b":             "/a",
		"/a%2Fb":           "/a/b",
		"/a//b///c":        "/a/b/c",
		"//a":              "/a",
		"/./a/./b/.":       "/a/b/",
		"/a/b/../c":        "/a/c",
		"/a/b/..":          "/a/",
		"/a/..":            "/",
		"/a/%2e%2e/b":      "/b",
		"/a/%2E%2e%2fb":    "/b",
		"/a/...":           "/a/...",
		"/a/.b":            "/a/.b",
		"/%41%c3%a9":       "/Aé",
		"/a%3Fb":           "/a?b",
		"/a%23b":           "/a#b",
		"/..":              "!",
		"/../a":            "!",
		"/a/../../b":       "!",
		"/%2e%2e/a":        "!",
		"/a%":              "!",
		"/a%4":             "!",
		"/a%zz":            "!",
		"/a%00":            "!",
		"/a\x00":           "!",
		"":                 "!",
		"*":                "!",
		"a":                "!",
		"/a/b/c/../../../": "/",
	} {
		got, ok := normalise([]byte(in))
		if !ok {
			got = []byte("!")
		}
		if string(got) != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzNormalise: what comes out can't be normalised further, and leads nowhere above the root.
func FuzzNormalise(f *testing.F) {
	for _, s := range []string{"/a/../b", "/%2e%2e/", "//", "/a//./%2f..", "/a?b", "/%25"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out, ok := normalise([]byte(in))
		if !ok {
			return
		}
		s := string(out)
		if !strings.HasPrefix(s, "/") || strings.Contains(s, "//") || strings.Contains(s, "\x00") {
			t.Fatalf("%q -> %q", in, s)
		}
		for _, segment := range strings.Split(s, "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("%q -> %q", in, s)
			}
		}
	})
}

func TestLookup(t *testing.T) {
	table := &table{hosts: map[string]*paths{}}
	for _, r := range []struct{ host, path string }{
		{"", "/"}, {"", "/orders"}, {"", "/orders/deep/er"}, {"", "/users"},
		{"shop.example", "/orders"}, {"Shop.Example", "/own"}, {"::1", "/six"},
	} {
		table.addRoute(topology.Route{Host: r.host, Path: r.path}, &target{name: r.host + r.path})
	}
	for _, tc := range []struct{ host, path, want string }{
		{"x", "/", "/"},
		{"x", "/orders", "/orders"},
		{"x", "/orders/", "/orders"},
		{"x", "/orders/1/2/3/4/5/6", "/orders"},
		{"x", "/ordersx", "/"},
		{"x", "/orders/deep", "/orders"},
		{"x", "/orders/deep/er", "/orders/deep/er"},
		{"x", "/orders/deep/er/", "/orders/deep/er"},
		{"x", "/orders/deep/err", "/orders"},
		{"shop.example", "/orders/1", "shop.example/orders"},
		{"SHOP.example.:8080", "/orders/1", "shop.example/orders"},
		{"shop.example", "/own", "Shop.Example/own"},
		{"x", "/own", "/"},
		{"shop.example", "/users", "/users"},
		{"[::1]:80", "/six/x", "::1/six"},
		{"", "/users", "/users"},
	} {
		to := table.lookup([]byte(tc.host), []byte(tc.path))
		if to == nil || to.name != tc.want {
			t.Errorf("%s%s: %+v, want %s", tc.host, tc.path, to, tc.want)
		}
	}
	empty := table.hosts[""]
	empty.root = nil
	if to := table.lookup([]byte("x"), []byte("/none")); to != nil {
		t.Errorf("%+v", to)
	}
}
