package topology

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestExpandFillsDefaults(t *testing.T) {
	got, problems := Expand(sample(), ExpandOptions{})
	checkProblem(t, problems, "")
	if got.Upstreams[3].Name != "orders" {
		t.Fatalf("upstreams %+v", got.Upstreams)
	}
	want := []Peer{
		{Key: PeerKey{Upstream: "orders", Server: "orders/a1"}, Service: "orders", ID: "a1", Text: "10.0.0.1:8080", Addr: "10.0.0.1:8080", Scheme: "http",
			Weight: 1, MaxFails: 1, FailTimeout: 10 * time.Second, Incarnation: 17, Order: 3, Zone: "a", Version: "1.2"},
		{Key: PeerKey{Upstream: "orders", Server: "orders/a2"}, Service: "orders", ID: "a2", Text: "[2001:db8::1]:443", Addr: "[2001:db8::1]:443", Scheme: "https",
			Weight: 5, MaxFails: 0, FailTimeout: 90 * time.Second, MaxConns: 9, SlowStart: 500 * time.Millisecond, Drain: true, Unproven: true, Order: 9, Zone: "ü"},
	}
	if diff := cmp.Diff(want, got.Upstreams[3].Peers); diff != "" {
		t.Errorf("peers (-want +got):\n%s", diff)
	}
	if len(got.Routes) != 3 {
		t.Errorf("routes %+v", got.Routes)
	}
}

func zoned() *Config {
	in := func(id, zone, version string, order int64, tags ...string) Instance {
		return Instance{ID: id, Order: order, Addr: "10.0.0." + id + ":80", Zone: zone, Version: version, Tags: tags}
	}
	return &Config{
		Services: []Service{{Name: "s", Instances: []Instance{
			in("4", "b", "1", 1, "blue"), in("1", "a", "1", 2, "blue", "big"), in("2", "a", "2", 3, "big"), in("3", "", "2", 4),
		}}},
	}
}

func TestExpandDiscover(t *testing.T) {
	cases := []struct {
		name   string
		line   Directive
		ids    string
		reason string
	}{
		{"all, in the registry's order", Directive{"discover", "s"}, "4123", ""},
		{"of a zone", Directive{"discover", "s", "zone=a"}, "12", ""},
		{"of no zone", Directive{"discover", "s", "zone="}, "3", ""},
		{"of a version", Directive{"discover", "s", "version=2"}, "23", ""},
		{"with a tag", Directive{"discover", "s", "tag=blue"}, "41", ""},
		{"with two tags", Directive{"discover", "s", "tag=blue", "tag=big"}, "1", ""},
		{"all at once", Directive{"discover", "s", "zone=a", "version=2", "tag=big"}, "2", ""},
		{"unknown service", Directive{"discover", "nobody"}, "", ""},
		{"no service", Directive{"discover"}, "", "want discover"},
		{"filter for a service", Directive{"discover", "zone=a"}, "", "want discover"},
		{"unknown filter", Directive{"discover", "s", "color=red"}, "", "unknown parameter color"},
		{"bare word", Directive{"discover", "s", "backup"}, "", "unknown parameter backup"},
		{"zone twice", Directive{"discover", "s", "zone=a", "zone=b"}, "", "parameter zone twice"},
		{"no such directive", Directive{"least_con"}, "", "no directive of an upstream"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := zoned()
			c.Upstreams = []Upstream{{Name: "u", Origin: Declared, Directives: []Directive{tc.line}}}
			got, problems := Expand(c, ExpandOptions{})
			ids := ""
			for _, p := range got.Upstreams[0].Peers {
				ids += p.ID
			}
			if ids != tc.ids {
				t.Errorf("instances %q, want %q", ids, tc.ids)
			}
			checkProblem(t, problems, tc.reason)
		})
	}
}

// checkProblem wants exactly one problem whose reason begins with the given one, or none.
func checkProblem(t *testing.T, problems []Problem, reason string) {
	t.Helper()
	if reason == "" {
		if len(problems) > 0 {
			t.Errorf("problems %v", problems)
		}
		return
	}
	if len(problems) != 1 || len(problems[0].Reason) < len(reason) || problems[0].Reason[:len(reason)] != reason {
		t.Errorf("problems %v, want %q", problems, reason)
	}
}

func TestExpandServer(t *testing.T) {
	base := Peer{Addr: "10.0.0.1:8080", Scheme: "http", Weight: 1, MaxFails: 1, FailTimeout: 10 * time.Second}
	with := func(f func(*Peer)) *Peer { p := base; f(&p); return &p }
	cases := []struct {
		args   []string
		want   *Peer
		reason string
	}{
		{[]string{"10.0.0.1:8080"}, &base, ""},
		{[]string{"10.0.0.1"}, with(func(p *Peer) { p.Addr = "10.0.0.1:80" }), ""},
		{[]string{"[2001:DB8::1]"}, with(func(p *Peer) { p.Addr = "[2001:db8::1]:80" }), ""},
		{[]string{"[2001:db8::1]:81"}, with(func(p *Peer) { p.Addr = "[2001:db8::1]:81" }), ""},
		{[]string{"10.0.0.1:8080", "weight=5", "max_fails=0", "fail_timeout=2m", "max_conns=7", "slow_start=30s", "backup"},
			with(func(p *Peer) {
				p.Weight, p.MaxFails, p.FailTimeout, p.MaxConns, p.SlowStart, p.Backup = 5, 0, 2*time.Minute, 7, 30*time.Second, true
			}), ""},
		{[]string{"10.0.0.1:8080", "down"}, with(func(p *Peer) { p.Down = true }), ""},
		{[]string{"10.0.0.1:8080", "drain"}, with(func(p *Peer) { p.Drain = true }), ""},
		{[]string{"10.0.0.1:8080", "fail_timeout=1h"}, with(func(p *Peer) { p.FailTimeout = time.Hour }), ""},
		{[]string{"10.0.0.1:8080", "fail_timeout=7"}, with(func(p *Peer) { p.FailTimeout = 7 * time.Second }), ""},
		{nil, nil, "want server"},
		{[]string{"2001:db8::1"}, nil, "invalid host"},
		{[]string{"[10.0.0.1]"}, nil, "invalid host"},
		{[]string{"backend.example:80"}, nil, "names to resolve"},
		{[]string{"unix:/run/x"}, nil, "unix sockets"},
		{[]string{"10.0.0.1:0"}, nil, "invalid port"},
		{[]string{"10.0.0.1:8080", "weight=0"}, nil, `invalid parameter "weight=0"`},
		{[]string{"10.0.0.1:8080", "weight"}, nil, `invalid parameter "weight"`},
		{[]string{"10.0.0.1:8080", "max_fails=-1"}, nil, `invalid parameter "max_fails=-1"`},
		{[]string{"10.0.0.1:8080", "fail_timeout=1x"}, nil, `invalid parameter "fail_timeout=1x"`},
		{[]string{"10.0.0.1:8080", "backup=1"}, nil, `invalid parameter "backup=1"`},
		{[]string{"a.example", "resolve"}, nil, "resolve: not built here"},
		{[]string{"10.0.0.1:8080", "resolve"}, &base, ""},
		{[]string{"10.0.0.1:8080", "wieght=1"}, nil, `invalid parameter "wieght=1"`},
	}
	for _, tc := range cases {
		c := &Config{Upstreams: []Upstream{{Name: "u", Origin: Declared, Directives: []Directive{append(Directive{"server"}, tc.args...)}}}}
		got, problems := Expand(c, ExpandOptions{})
		peers := got.Upstreams[0].Peers
		checkProblem(t, problems, tc.reason)
		if tc.want == nil {
			if len(peers) > 0 {
				t.Errorf("%v: %+v", tc.args, peers)
			}
			continue
		}
		want := *tc.want
		want.Text = tc.args[0]
		want.Key = PeerKey{Upstream: "u", Backup: want.Backup, Server: tc.args[0], Addr: want.Addr}
		if diff := cmp.Diff([]Peer{want}, peers); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.args, diff)
		}
	}
}

func TestExpandNumbersEquals(t *testing.T) {
	c := zoned()
	c.Upstreams = []Upstream{{Name: "u", Origin: Declared, Directives: []Directive{
		{"server", "10.9.9.9:80"}, {"discover", "s", "zone=b"}, {"server", "10.9.9.9:80", "backup"}, {"server", "10.9.9.9:80"}, {"discover", "s", "zone=b"},
	}}}
	got, _ := Expand(c, ExpandOptions{})
	var keys []PeerKey
	seen := map[PeerKey]bool{}
	for _, p := range got.Upstreams[0].Peers {
		keys = append(keys, p.Key)
		if seen[p.Key] {
			t.Errorf("key twice: %+v", p.Key)
		}
		seen[p.Key] = true
	}
	want := []PeerKey{
		{"u", false, "10.9.9.9:80", "10.9.9.9:80", 0}, {"u", false, "s/4", "", 0}, {"u", true, "10.9.9.9:80", "10.9.9.9:80", 0},
		{"u", false, "10.9.9.9:80", "10.9.9.9:80", 1}, {"u", false, "s/4", "", 1},
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestExpandOwnZoneFirst(t *testing.T) {
	c := zoned()
	discover := func(name string, args ...string) Upstream {
		return Upstream{Name: name, Origin: Derived, Directives: []Directive{append(Directive{"discover", "s"}, args...)}}
	}
	c.Upstreams = []Upstream{discover("s"), discover("s@", "zone="), discover("s@a", "zone=a"), discover("s@b", "zone=b")}
	c.Upstrands = []Upstrand{{Name: "s", Origin: Derived, OwnZoneFirst: true, Directives: []Directive{
		{"upstream", "s@a"}, {"upstream", "s@b"}, {"upstream", "s@"}, {"order", "per_request"}, {"next_upstream_statuses", "error", "timeout"},
	}}}
	for zone, want := range map[string][]Member{
		"":  {{Upstream: "s"}},
		"c": {{Upstream: "s"}},
		"a": {{Upstream: "s@a"}, {Upstream: "s@b", Backup: true}, {Upstream: "s@", Backup: true}},
		"b": {{Upstream: "s@a", Backup: true}, {Upstream: "s@b"}, {Upstream: "s@", Backup: true}},
	} {
		got, problems := Expand(c, ExpandOptions{Zone: zone})
		checkProblem(t, problems, "")
		st := got.Upstrands[0]
		if diff := cmp.Diff(want, st.Members); diff != "" || !st.PerRequest || len(st.NextStatuses) != 2 {
			t.Errorf("zone %q: %+v\n%s", zone, st, diff)
		}
	}
}

func TestExpandUpstrandProblems(t *testing.T) {
	for _, tc := range []struct {
		line   Directive
		reason string
	}{
		{Directive{"upstream", "nobody"}, `upstream "nobody" is not found`},
		{Directive{"upstream"}, "want upstream"},
		{Directive{"upstream", "~(?=u)"}, "bad pattern"},
		{Directive{"upstream", "u", "blacklist_interval=1s"}, ""},
		{Directive{"order", "start_random"}, ""},
		{Directive{"next_upstream_statuses"}, "want next_upstream_statuses"},
		{Directive{"next_upstream_statuses", "oops"}, `invalid status "oops"`},
		{Directive{"next_upstream_statuses", "error", "5xx", "404", "non_idempotent"}, ""},
		{Directive{"upstream", "u", "backup"}, ""},
		{Directive{"intercept_statuses", "5xx", "/x"}, ""},
	} {
		c := &Config{Upstreams: []Upstream{{Name: "u", Origin: Declared}}, Upstrands: []Upstrand{{Name: "s", Origin: Declared, Directives: []Directive{tc.line}}}}
		_, problems := Expand(c, ExpandOptions{})
		checkProblem(t, problems, tc.reason)
	}
}

func TestExpandDanglingRoutes(t *testing.T) {
	c := &Config{Routes: []Route{{Path: "/a", Upstream: "x"}, {Path: "/b", Upstrand: "x"}}}
	got, problems := Expand(c, ExpandOptions{})
	if len(got.Routes) != 0 || len(problems) != 2 || problems[0].Error() != "route /a: no upstream x" {
		t.Errorf("%+v %v", got.Routes, problems)
	}
}

func TestExpanderKeepsWhatDidNotChange(t *testing.T) {
	r := NewReplica()
	w := &writer{pair: Pair{1, 1}, content: map[string][]byte{}}
	put := func(key string, v []byte) { feed(r, w.put(key, v)) }
	up := func(name, service string) {
		rec, err := EncodeUpstream(Upstream{Name: name, Origin: Derived, Directives: []Directive{{"discover", service}}})
		if err != nil {
			t.Fatal(err)
		}
		put(rec.Key, rec.Value)
	}
	put("service/a", service("a", "1"))
	put("service/b", service("b", "1"))
	up("a", "a")
	up("b", "b")
	up("none", "none")
	x := NewExpander(ExpandOptions{})
	expand := func() *Expanded {
		topo, err := feed(r, w.commit(t))
		if err != nil {
			t.Fatal(err)
		}
		e, problems := x.Expand(topo.Config)
		checkProblem(t, problems, "")
		full, _ := Expand(topo.Config, ExpandOptions{})
		if diff := cmp.Diff(full, e); diff != "" {
			t.Errorf("incremental expansion differs:\n%s", diff)
		}
		w.pair.Version++
		return e
	}
	one := expand()
	put("service/a", service("a", "1", "2"))
	two := expand()
	if one.Upstreams[0] == two.Upstreams[0] || len(two.Upstreams[0].Peers) != 2 {
		t.Error("a changed service was not expanded again")
	}
	if one.Upstreams[1] != two.Upstreams[1] || one.Upstreams[2] != two.Upstreams[2] {
		t.Error("an unchanged upstream was expanded again")
	}
	put("service/a", nil)
	if three := expand(); len(three.Upstreams[0].Peers) != 0 {
		t.Error("a service that is gone still has peers")
	}
	up("b", "a")
	if four := expand(); len(four.Upstreams[1].Peers) != 0 {
		t.Error("changed directives were not carried out")
	}
}
