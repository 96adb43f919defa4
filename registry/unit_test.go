package registry

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRoutePath(t *testing.T) {
	for in, want := range map[string]string{"": "", "/": "/", "//": "/", "/orders": "/orders", "/orders/": "/orders", "/a/b/": "/a/b"} {
		if got := RoutePath(in); got != want {
			t.Errorf("RoutePath(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAddress(t *testing.T) {
	for _, tt := range []struct {
		a    Attrs
		want string
	}{{Attrs{IP: "10.0.0.1", Port: 80}, "10.0.0.1:80"}, {Attrs{IP: "fd00::1", Port: 8080}, "[fd00::1]:8080"}, {Attrs{}, ""}} {
		if got := address(&tt.a); got != tt.want {
			t.Errorf("address(%+v) = %q, want %q", tt.a, got, tt.want)
		}
	}
}

func TestClampInt(t *testing.T) {
	for in, want := range map[float64]int64{
		-1: 0, 0: 0, 1.4: 1, 1.5: 2, 1e300: math.MaxInt32, math.Inf(1): math.MaxInt32, math.Inf(-1): 0, math.NaN(): 0,
	} {
		if got := clampInt(in); got != want {
			t.Errorf("clampInt(%v) = %d, want %d", in, got, want)
		}
	}
}

// Whatever comes out of a topic must fit the columns and be valid text.
func FuzzCut(f *testing.F) {
	f.Add("plain", 10)
	f.Add("äöü€𝄞"+strings.Repeat("x", 300), 255)
	f.Add("\xff\xfe\x00", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n < 1 || n > 2000 {
			return
		}
		got := cutText(s, n)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > n || strings.IndexByte(got, 0) >= 0 {
			t.Errorf("cutText(%q, %d) = %q", s, n, got)
		}
		if a := cutASCII(s, n); len(a) > n || !isASCII(a) {
			t.Errorf("cutASCII(%q, %d) = %q", s, n, a)
		}
	})
}

func TestDifferences(t *testing.T) {
	a := Attrs{Scheme: "http", IP: "10.0.0.1", Port: 80, Weight: 1, Tags: []string{"x"}}
	b := a
	if got := differences(&a, &b); got != "" {
		t.Errorf("no difference reads %q", got)
	}
	b.Weight, b.Zone, b.Port, b.Meta = 3, "eu", 81, map[string]string{"k": "v"}
	const want = `address 10.0.0.1:80 → 10.0.0.1:81, weight 1 → 3, zone "" → "eu", meta`
	if got := differences(&a, &b); got != want {
		t.Errorf("differences = %q, want %q", got, want)
	}
	// Every field that sameAttrs looks at must be told, or a change would be stored without an event.
	for name, change := range map[string]func(*Attrs){
		"scheme": func(a *Attrs) { a.Scheme = "https" }, "ip": func(a *Attrs) { a.IP = "10.0.0.2" },
		"port": func(a *Attrs) { a.Port = 1 }, "url": func(a *Attrs) { a.URL = "/" }, "weight": func(a *Attrs) { a.Weight = 2 },
		"max_conns": func(a *Attrs) { a.MaxConns = 2 }, "max_fails": func(a *Attrs) { a.MaxFails = 2 },
		"fail_timeout": func(a *Attrs) { a.FailTimeout = 2 }, "slow_start": func(a *Attrs) { a.SlowStart = 2 },
		"zone": func(a *Attrs) { a.Zone = "z" }, "version": func(a *Attrs) { a.Version = "2" },
		"tags": func(a *Attrs) { a.Tags = []string{"y"} }, "meta": func(a *Attrs) { a.Meta = map[string]string{"k": "w"} },
	} {
		c := a
		change(&c)
		if sameAttrs(&a, &c) || differences(&a, &c) == "" {
			t.Errorf("a change of %s is not seen", name)
		}
	}
}

func TestSQLiteDSN(t *testing.T) {
	got := SQLiteDSN("/data/a b/x?y.db")
	if !strings.HasPrefix(got, "file:/data/a%20b/x%3Fy.db?") || !strings.Contains(got, "_txlock=immediate") {
		t.Errorf("SQLiteDSN = %q", got)
	}
}
