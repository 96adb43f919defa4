package forward

import (
	"net/netip"
	"strings"
	"testing"
)

func TestForwarded(t *testing.T) {
	for _, c := range []struct {
		name, remote, host string
		in                 []string
		trusted, secure    bool
		want               string
	}{
		{"plain", "10.0.0.9", "shop", nil, false, false, "for=10.0.0.9;host=shop;proto=http"},
		{"over TLS, with a port", "10.0.0.9", "shop:8443", nil, false, true, `for=10.0.0.9;host="shop:8443";proto=https`},
		{"IPv6", "2001:db8::1", "[::1]:80", nil, false, false, `for="[2001:db8::1]";host="[::1]:80";proto=http`},
		{"IPv6 with a zone", "fe80::1%eth0", "shop", nil, false, false, `for="[fe80::1]";host=shop;proto=http`},
		{"IPv4 in IPv6", "::ffff:10.0.0.9", "shop", nil, false, false, "for=10.0.0.9;host=shop;proto=http"},
		{"nobody knows", "", "", nil, false, false, "for=unknown;proto=http"},
		{"a hostile host", "10.0.0.9", `a";for=6.6.6.6;x="\`, nil, false, false, `for=10.0.0.9;host="a\";for=6.6.6.6;x=\"\\";proto=http`},
		{"forged", "10.0.0.9", "shop", []string{"Forwarded: for=1.1.1.1"}, false, false, "for=10.0.0.9;host=shop;proto=http"},
		{"from a trusted one", "10.0.0.9", "shop", []string{"Forwarded: for=1.1.1.1", `forwarded: For="[2001:db8::2]:4711";proto=https, for=_hidden`}, true, false,
			`for=1.1.1.1, For="[2001:db8::2]:4711";proto=https, for=_hidden, for=10.0.0.9;host=shop;proto=http`},
		{"a quote that never ends", "10.0.0.9", "shop", []string{"Forwarded: for=1.1.1.1", `Forwarded: for="1.1.1.1`}, true, false, "for=10.0.0.9;host=shop;proto=http"},
		{"a quote that is escaped", "10.0.0.9", "shop", []string{`Forwarded: for="1.1.1.1\"`}, true, false, "for=10.0.0.9;host=shop;proto=http"},
		{"no pairs", "10.0.0.9", "shop", []string{"Forwarded: 1.1.1.1"}, true, false, "for=10.0.0.9;host=shop;proto=http"},
		{"no value", "10.0.0.9", "shop", []string{"Forwarded: for="}, true, false, "for=10.0.0.9;host=shop;proto=http"},
		{"an address without quotes", "10.0.0.9", "shop", []string{"Forwarded: for=[::1]"}, true, false, "for=10.0.0.9;host=shop;proto=http"},
		{"words behind a value", "10.0.0.9", "shop", []string{`Forwarded: for="a"b`}, true, false, "for=10.0.0.9;host=shop;proto=http"},
		{"empty elements", "10.0.0.9", "shop", []string{"Forwarded: , for=a ;; by=b,"}, true, false, ", for=a ;; by=b,, for=10.0.0.9;host=shop;proto=http"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Request{Authority: []byte(c.host), Secure: c.secure, Fields: fields(c.in...)}
			if c.remote != "" {
				r.Remote = netip.MustParseAddr(c.remote)
			}
			out := Outgoing(r, Identity{Trusted: c.trusted, Forwarded: true}).Fields
			if got := string(Get(out, "Forwarded")); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if n := strings.Count(strings.ToLower(text(out)), "\nforwarded: "); n != 1 {
				t.Errorf("%d fields:\n%s", n, text(out))
			}
		})
	}
}

func TestRealIP(t *testing.T) {
	for _, c := range []struct {
		name    string
		in      []string
		trusted bool
		want    string
	}{
		{"plain", nil, false, "10.0.0.9"},
		{"forged", []string{"X-Real-IP: 1.1.1.1", "X-Forwarded-For: 2.2.2.2"}, false, "10.0.0.9"},
		{"trusted", []string{"X-Real-IP: 1.1.1.1", "X-Forwarded-For: 2.2.2.2"}, true, "1.1.1.1"},
		{"trusted, by the list", []string{"X-Forwarded-For: 6.6.6.6, 7.7.7.7", "X-Forwarded-For: 8.8.8.8,2001:db8::2 "}, true, "2001:db8::2"},
		{"trusted, and nonsense", []string{"X-Real-IP: localhost", "X-Forwarded-For: 1.1.1.1, unknown"}, true, "10.0.0.9"},
		{"trusted, and no address", []string{"X-Real-IP: 1.1.1.1\tX", "X-Forwarded-For: fe80::1%eth0"}, true, "10.0.0.9"},
		{"trusted, and very long", []string{"X-Real-IP: " + strings.Repeat("1", 100_000)}, true, "10.0.0.9"},
	} {
		r := &Request{Remote: netip.MustParseAddr("10.0.0.9"), Fields: fields(c.in...)}
		out := Outgoing(r, Identity{Trusted: c.trusted}).Fields
		if got := string(Get(out, "X-Real-IP")); got != c.want || strings.Count(strings.ToLower(text(out)), "x-real-ip") != 1 {
			t.Errorf("%s: %s, want %s", c.name, text(out), c.want)
		}
	}
}

func TestVia(t *testing.T) {
	for _, c := range []struct {
		name, proto string
		in          []string
		want        string
		loops       bool
	}{
		{"plain", "HTTP/1.1", nil, "1.1 edge", false},
		{"HTTP/1.0", "HTTP/1.0", nil, "1.0 edge", false},
		{"HTTP/2", "HTTP/2.0", nil, "2.0 edge", false},
		{"continued", "HTTP/1.1", []string{"Via: 1.0 fred, 1.1 p.example.net (Apache/1.1)", "via: 1.1 x"}, "1.0 fred, 1.1 p.example.net (Apache/1.1), 1.1 x, 1.1 edge", false},
		{"a circle", "HTTP/1.1", []string{"Via: 1.1 other, 1.1 EDGE"}, "1.1 other, 1.1 EDGE, 1.1 edge", true},
		{"a name that begins like ours", "HTTP/1.1", []string{"Via: 1.1 edge-2, 1.1 edge:80, edge"}, "1.1 edge-2, 1.1 edge:80, edge, 1.1 edge", false},
	} {
		r := &Request{Proto: c.proto, Fields: fields(c.in...)}
		if got := string(Get(Outgoing(r, Identity{Via: "edge"}).Fields, "Via")); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got := Loops(r, "edge"); got != c.loops {
			t.Errorf("%s: loops %v", c.name, got)
		}
	}
	if v := Get(Outgoing(&Request{Fields: fields("Via: 1.1 fred")}, Identity{}).Fields, "Via"); string(v) != "1.1 fred" {
		t.Errorf("where none is written: %s", v)
	}
}

func TestSetField(t *testing.T) {
	r := &Request{Fields: fields("A: 1", "Traceparent: x", "B: 2", "traceparent: y")}
	SetField(r, []byte("traceparent"), []byte("z"))
	if got := text(r.Fields); got != "A: 1\nTraceparent: z\nB: 2" {
		t.Error(got)
	}
	SetField(r, []byte("C"), []byte("3"))
	if got := text(r.Fields); got != "A: 1\nTraceparent: z\nB: 2\nC: 3" {
		t.Error(got)
	}
}

func BenchmarkOutgoing(b *testing.B) {
	r := &Request{Authority: []byte("shop"), Remote: netip.MustParseAddr("10.0.0.9"), Proto: "HTTP/1.1", Fields: fields("Accept: */*", "User-Agent: x", "Cookie: a=1")}
	for name, as := range map[string]Identity{"plain": {}, "all": {Forwarded: true, Via: "edge"}} {
		b.Run(name, func(b *testing.B) {
			var d Draft
			b.ReportAllocs()
			for b.Loop() {
				d.Make(r, as)
				d.Clear()
			}
		})
	}
}
