package topology

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func intp(n int) *int { return &n }

// sample is a Config that uses every field.
func sample() *Config {
	return &Config{
		Services: []Service{
			{Name: "billing", Instances: []Instance{}},
			{Name: "orders", Instances: []Instance{
				{ID: "a1", Order: 3, Incarnation: 17, Addr: "10.0.0.1:8080", Zone: "a", Version: "1.2", Tags: []string{"blue", "x<y&z"}},
				{ID: "a2", Order: 9, Scheme: "https", Addr: "[2001:db8::1]:443", Weight: 5, MaxConns: 9, MaxFails: intp(0), FailTimeout: Duration(90e9), SlowStart: Duration(500e6), Zone: "ü", Drain: true, Unproven: true},
			}},
		},
		Upstreams: []Upstream{
			{Name: "zz", Origin: Declared, Rank: 0, Directives: []Directive{{"server", "10.9.9.9:80", "backup"}}},
			{Name: "aa", Origin: Declared, Rank: 1, Directives: []Directive{}},
			{Name: "billing", Origin: Derived, Directives: []Directive{{"discover", "billing"}}},
			{Name: "orders", Origin: Derived, Directives: []Directive{{"discover", "orders"}}},
			{Name: "orders@a/b", Origin: Derived, Directives: []Directive{{"discover", "orders", "zone=a/b"}}},
		},
		Upstrands: []Upstrand{{Name: "orders", Origin: Derived, OwnZoneFirst: true, Directives: []Directive{{"upstream", "orders@a/b"}, {"order", "per_request"}}}},
		Routes: []Route{
			{Path: "/", Origin: Derived, Upstream: "billing"},
			{Path: "/orders", Origin: Derived, Upstrand: "orders"},
			{Host: "example.org", Path: "/orders/x", Origin: Declared, Upstream: "zz"},
		},
	}
}

func TestEncodeDecodeIdentity(t *testing.T) {
	records, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeRecords(records)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Errorf("decode(encode) differs (-want +got):\n%s", diff)
	}
	again, err := Encode(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(records, again); diff != "" {
		t.Errorf("encode(decode(encode)) differs:\n%s", diff)
	}
}

func TestEncodeRefuses(t *testing.T) {
	cases := map[string]func(*Config){
		"services out of order":      func(c *Config) { c.Services[0], c.Services[1] = c.Services[1], c.Services[0] },
		"service twice":              func(c *Config) { c.Services[0].Name = "orders" },
		"instances out of order":     func(c *Config) { c.Services[1].Instances[0].Order = 10 },
		"instance twice":             func(c *Config) { c.Services[1].Instances[0].ID = "a2" },
		"no address":                 func(c *Config) { c.Services[1].Instances[0].Addr = "" },
		"name for an address":        func(c *Config) { c.Services[1].Instances[0].Addr = "host:80" },
		"address not canonical":      func(c *Config) { c.Services[1].Instances[0].Addr = "[2001:DB8::1]:80" },
		"port 0":                     func(c *Config) { c.Services[1].Instances[0].Addr = "10.0.0.1:0" },
		"scheme":                     func(c *Config) { c.Services[1].Instances[0].Scheme = "ftp" },
		"negative weight":            func(c *Config) { c.Services[1].Instances[0].Weight = -1 },
		"negative max_fails":         func(c *Config) { c.Services[1].Instances[0].MaxFails = intp(-1) },
		"negative fail_timeout":      func(c *Config) { c.Services[1].Instances[0].FailTimeout = -1 },
		"control character in zone":  func(c *Config) { c.Services[1].Instances[0].Zone = "a\nb" },
		"tag not UTF-8":              func(c *Config) { c.Services[1].Instances[0].Tags = []string{"\xff"} },
		"upstream twice":             func(c *Config) { c.Upstreams[3].Name = "billing" },
		"derived before declared":    func(c *Config) { c.Upstreams[0], c.Upstreams[2] = c.Upstreams[2], c.Upstreams[0] },
		"derived with a rank":        func(c *Config) { c.Upstreams[4].Rank = 1 },
		"unknown origin":             func(c *Config) { c.Upstreams[0].Origin = "guessed" },
		"empty directive":            func(c *Config) { c.Upstreams[0].Directives = []Directive{{}} },
		"route to both":              func(c *Config) { c.Routes[0].Upstrand = "orders" },
		"route to nothing":           func(c *Config) { c.Routes[0].Upstream = "" },
		"route to unknown upstream":  func(c *Config) { c.Routes[0].Upstream = "nobody" },
		"route to unknown upstrand":  func(c *Config) { c.Routes[1].Upstrand = "nobody" },
		"route without leading /":    func(c *Config) { c.Routes[0].Path = "x" },
		"routes out of order":        func(c *Config) { c.Routes[0], c.Routes[1] = c.Routes[1], c.Routes[0] },
		"service name with a slash":  func(c *Config) { c.Services[1].Name = "z/0" },
		"upstream name is too long":  func(c *Config) { c.Upstreams[4].Name = strings.Repeat("x", 257) },
		"upstream without a name":    func(c *Config) { c.Upstreams[0].Name = "" },
		"host that holds a slash":    func(c *Config) { c.Routes[2].Host = "a/b" },
		"instance without an id":     func(c *Config) { c.Services[1].Instances[0].ID = "" },
		"negative slow_start":        func(c *Config) { c.Services[1].Instances[0].SlowStart = -1 },
		"negative max_conns":         func(c *Config) { c.Services[1].Instances[0].MaxConns = -1 },
		"address with an IPv6 zone":  func(c *Config) { c.Services[1].Instances[0].Addr = "[fe80::1%eth0]:80" },
		"control char in directives": func(c *Config) { c.Upstreams[0].Directives[0][1] = "a\x00" },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			c := sample()
			spoil(c)
			if _, err := Encode(c); err == nil {
				t.Error("was encoded")
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	ok := func() map[string]string {
		records, err := Encode(sample())
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]string{}
		for _, r := range records {
			m[r.Key] = string(r.Value)
		}
		return m
	}
	cases := map[string]func(m map[string]string){
		"unknown kind":       func(m map[string]string) { m["thing/x"] = "{}" },
		"key without a name": func(m map[string]string) { m["service/"] = `{"name":"","instances":[]}` },
		"other name inside":  func(m map[string]string) { m["service/orders"] = m["service/billing"] },
		"other upstream":     func(m map[string]string) { m["upstream/orders"] = m["upstream/billing"] },
		"other upstrand":     func(m map[string]string) { m["upstrand/other"] = m["upstrand/orders"] },
		"other route":        func(m map[string]string) { m["route//elsewhere"] = m["route//orders"] },
		"unknown field":      func(m map[string]string) { m["service/billing"] = `{"name":"billing","instances":[],"new":1}` },
		"wrong type":         func(m map[string]string) { m["service/billing"] = `{"name":"billing","instances":{}}` },
		"two values":         func(m map[string]string) { m["service/billing"] += "{}" },
		"not UTF-8":          func(m map[string]string) { m["service/billing"] = "{\"name\":\"billing\xff\"}" },
		"whole and parts":    func(m map[string]string) { m["service/billing/0"] = m["service/billing"] },
		"one part":           func(m map[string]string) { m["service/x/0"] = `{"name":"x","instances":[]}` },
		"part missing": func(m map[string]string) {
			m["service/x/0"], m["service/x/2"] = `{"name":"x","instances":[]}`, `{"name":"x","instances":[]}`
		},
		"part 01": func(m map[string]string) { m["service/x/01"] = `{"name":"x","instances":[]}` },
		"negative duration": func(m map[string]string) {
			m["service/x"] = `{"name":"x","instances":[{"id":"a","order":1,"addr":"1.1.1.1:1","slow_start":"-1s"}]}`
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			m := ok()
			spoil(m)
			var records []Record
			for k, v := range m {
				records = append(records, Record{Key: k, Value: []byte(v)})
			}
			if c, err := DecodeRecords(records); err == nil {
				t.Errorf("was decoded to %+v", c)
			}
		})
	}
}

func bigService(n int) Service {
	s := Service{Name: "big", Instances: []Instance{}}
	for i := range n {
		s.Instances = append(s.Instances, Instance{
			ID: fmt.Sprintf("node-%05d", i), Order: int64(i + 1), Incarnation: 1700000000000 + int64(i),
			Addr: fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255), Zone: "zone-" + string(rune('a'+i%3)), Version: "1.0.0",
		})
	}
	return s
}

func TestSplitRewritesOnePart(t *testing.T) {
	s := bigService(5000)
	before, err := EncodeService(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(before) < 4 || len(before)&(len(before)-1) != 0 {
		t.Fatalf("%d parts", len(before))
	}
	for _, r := range before {
		if len(r.Value) > PartLimit {
			t.Errorf("%s has %d bytes", r.Key, len(r.Value))
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 4 {
		changed := s
		changed.Instances = append([]Instance{}, s.Instances...)
		changed.Instances[rng.IntN(len(s.Instances))].Weight = 7
		after, err := EncodeService(changed, len(before))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range before {
			if string(before[i].Value) != string(after[i].Value) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("one changed instance rewrote %d parts", n)
		}
	}
	c, err := DecodeRecords(before)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Service{s}, c.Services); diff != "" {
		t.Errorf("parts do not join to the whole:\n%s", diff)
	}
}

func TestSplitDoesNotFlap(t *testing.T) {
	limit := sort.Search(3000, func(n int) bool { // the least number of instances that does not fit into one record
		r, err := EncodeService(bigService(n), 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(r) > 1
	})
	parts, switches := 0, 0
	for i := range 10 {
		r, err := EncodeService(bigService(limit-30+60*(i%2)), parts) // to and fro over the limit
		if err != nil {
			t.Fatal(err)
		}
		if parts > 0 && len(r) != parts {
			switches++
		}
		parts = len(r)
	}
	if switches > 1 {
		t.Errorf("the number of parts changed %d times", switches)
	}
	r, err := EncodeService(bigService(limit/4), parts)
	if err != nil {
		t.Fatal(err)
	}
	if len(r) != 1 {
		t.Errorf("a quarter of the limit still stands in %d parts", len(r))
	}
	if r[0].Key != "service/big" {
		t.Errorf("key %s", r[0].Key)
	}
}

func TestSplitGivesUpOnAGiant(t *testing.T) {
	s := Service{Name: "x", Instances: []Instance{{ID: "a", Addr: "1.1.1.1:1", Version: strings.Repeat("v", PartLimit)}}}
	if _, err := EncodeService(s, 0); err == nil {
		t.Error("was encoded")
	}
}

func TestRouteKeys(t *testing.T) {
	for _, r := range []Route{{Path: "/"}, {Path: "/a/b"}, {Host: "h.example", Path: "/"}, {Host: "h", Path: "/x"}} {
		n, err := parseKey(RouteKey(r.Host, r.Path))
		if err != nil || n.host != r.Host || n.path != r.Path {
			t.Errorf("%+v: key %s parsed to %+v, %v", r, RouteKey(r.Host, r.Path), n, err)
		}
	}
}
