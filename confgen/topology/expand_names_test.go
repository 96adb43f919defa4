package topology

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseResolver(t *testing.T) {
	got, reason := ParseResolver([]string{"127.0.0.11", "ns.test:5353", "valid=30s", "ipv6=off"})
	if reason != "" || !slices.Equal(got.Servers, []string{"127.0.0.11", "ns.test:5353"}) || got.Valid != 30*time.Second || !got.NoIPv6 || got.NoIPv4 || got.Timeout != DefaultResolverTimeout {
		t.Errorf("%+v %s", got, reason)
	}
	for args, want := range map[string]string{
		"":                            "no name servers",
		"valid=1s":                    "no name servers",
		"10.0.0.1 valid=1ms":          "invalid parameter",
		"10.0.0.1 valid=":             "invalid parameter",
		"10.0.0.1 ipv6=no":            "invalid parameter",
		"10.0.0.1 color=red":          "invalid parameter",
		"10.0.0.1:0":                  "invalid port",
		"10.0.0.1 ipv4=off ipv6=off":  `"ipv4" and "ipv6"`,
		"10.0.0.1 status_zone=x":      "",
		"[2001:db8::1]:53 ipv4=off":   "",
		"10.0.0.1 10.0.0.2 ipv4=on":   "",
		"unix:/run/resolver valid=1s": "unix sockets",
	} {
		if _, reason := ParseResolver(strings.Fields(args)); !strings.HasPrefix(reason, want) || (reason == "") != (want == "") {
			t.Errorf("%q: %q, want %q", args, reason, want)
		}
	}
}

// TestExpandQueries: a name with resolve gives the peers that are known now, and the very group as long as they stay.
func TestExpandQueries(t *testing.T) {
	var answers []Answer
	var failure error
	var asked []Query
	x := NewExpander(ExpandOptions{Strict: true, Resolver: &Resolver{Servers: []string{"10.0.0.53"}}, Query: func(q Query) ([]Answer, error) {
		asked = append(asked, q)
		return answers, failure
	}})
	c := lines("u: zone u 64k; server a.test:8080 resolve; server 10.0.0.1:9 backup", "v: zone v 64k; resolver 10.0.0.54; resolver_timeout 1s; server b.test service=http resolve max_fails=2")
	expand := func() *Expanded {
		got, problems := x.Expand(c)
		checkProblem(t, problems, "")
		return got
	}
	none := expand()
	if text := summary(none); text != "u: 9×1b\nv:\n" || !none.Upstreams[0].ByName || len(none.Upstreams[0].Queries) != 1 {
		t.Errorf("nothing known: %s%+v", text, none.Upstreams[0])
	}
	if asked[0].Host != "a.test" || asked[0].Resolver.Servers[0] != "10.0.0.53" || asked[1].Service != "http" || asked[1].Resolver.Servers[0] != "10.0.0.54" || asked[1].Resolver.Timeout != time.Second {
		t.Errorf("asked %+v", asked)
	}
	if same := expand(); same.Upstreams[0] != none.Upstreams[0] {
		t.Error("expanded again for the same answer")
	}
	answers = []Answer{{Addr: netip.MustParseAddrPort("10.0.0.1:0"), Weight: 5}, {Addr: netip.MustParseAddrPort("10.0.0.1:7"), Backup: true}}
	some := expand()
	if text := summary(some); text != "u: 8080×5 7×1b 9×1b\nv: 80×5 7×1b\n" {
		t.Error(text)
	}
	if p := some.Upstreams[1].Peers[0]; p.MaxFails != 2 || p.Text != "b.test" || p.Key != (PeerKey{Upstream: "v", Server: "b.test", Addr: "10.0.0.1:80"}) {
		t.Errorf("%+v", p)
	}
	failure = errors.New("no answer")
	if text := summary(expand()); text != "u: 9×1b\nv:\n" {
		t.Error(text)
	}
}

func TestExpandNamesNeedLookup(t *testing.T) {
	_, problems := Expand(lines("u: server a.test"), ExpandOptions{})
	checkProblem(t, problems, "names to resolve")
	_, problems = Expand(lines("u: server a.test"), ExpandOptions{Lookup: twoAddresses})
	checkProblem(t, problems, "host not found")
	_, problems = Expand(lines("u: server a.test"), ExpandOptions{Lookup: func(string) ([]netip.Addr, error) { return nil, nil }})
	checkProblem(t, problems, "host not found")
	got, problems := Expand(lines("u: server two.test:81 weight=2; server two.test:81"), ExpandOptions{Lookup: twoAddresses})
	checkProblem(t, problems, "")
	seen := map[PeerKey]bool{}
	for _, p := range got.Upstreams[0].Peers {
		seen[p.Key] = true
	}
	if text := summary(got); text != "u: 10.0.0.8:81×2 10.0.0.9:81×2 10.0.0.8:81×1 10.0.0.9:81×1\n" || len(seen) != 4 {
		t.Errorf("%s%v", text, seen)
	}
}
