package topology

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// lines reads "NAME: directive arg; directive arg" for each upstream, in order.
func lines(texts ...string) *Config {
	c := &Config{}
	for i, text := range texts {
		name, rest, _ := strings.Cut(text, ": ")
		var ds []Directive
		for _, line := range strings.Split(rest, "; ") {
			ds = append(ds, strings.Fields(line))
		}
		if strand, ok := strings.CutPrefix(name, "upstrand "); ok {
			c.Upstrands = append(c.Upstrands, Upstrand{Name: strand, Origin: Declared, Rank: i, Directives: ds})
			continue
		}
		c.Upstreams = append(c.Upstreams, Upstream{Name: name, Origin: Declared, Rank: i, Directives: ds})
	}
	return c
}

// summary is the groups of an expansion, one a line: "NAME: port×weight[b][d] …", with a + for extend_single_peers.
func summary(x *Expanded) string {
	var b strings.Builder
	for _, g := range x.Upstreams {
		b.WriteString(g.Name)
		if g.CountSingle {
			b.WriteByte('+')
		}
		b.WriteByte(':')
		for _, p := range g.Peers {
			fmt.Fprintf(&b, " %s×%d", strings.TrimPrefix(p.Addr, "10.0.0.1:"), p.Weight)
			if p.Backup {
				b.WriteByte('b')
			}
			if p.Down {
				b.WriteByte('d')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestExpandCombined takes the cases of theme 10 of the recorded vectors: what each directive makes of which servers.
func TestExpandCombined(t *testing.T) {
	const v, w = "v: server 10.0.0.1:1 weight=3; server 10.0.0.1:2", "w: server 10.0.0.1:3; server 10.0.0.1:4 weight=2"
	const four = "server 10.0.0.1:1 weight=2; server 10.0.0.1:2; server 10.0.0.1:3 backup; "
	cases := []struct {
		name string
		in   []string
		want string // of the groups after those of v and w
	}{
		{"add_order", []string{v, w, "u: add_upstream w; server 10.0.0.1:5; add_upstream v"}, "u: 3×1 4×2 5×1 1×3 2×1"},
		{"add_weight", []string{v, "u: server 10.0.0.1:5 weight=4; add_upstream v weight=2"}, "u: 5×4 1×6 2×2"},
		{"add_backup", []string{v, w, "u: add_upstream v; add_upstream w backup"}, "u: 1×3 2×1 3×1b 4×2b"},
		{"add_backup_weight", []string{v, "u: server 10.0.0.1:5 down; add_upstream v weight=3 backup"}, "u: 5×1d 1×9b 2×3b"},
		{"add_keeps_backup_flag", []string{"v: server 10.0.0.1:1; server 10.0.0.1:2 backup", "u: add_upstream v; add_upstream v"}, "v: 1×1 2×1b\nu: 1×1 2×1b 1×1 2×1b"},
		{"add_snapshot", []string{v, "x: server 10.0.0.1:5; add_upstream v weight=2", "u: add_upstream x weight=2; server 10.0.0.1:6"}, "x: 5×1 1×6 2×2\nu: 5×2 1×12 2×4 6×1"},
		{"add_case_insensitive", []string{"Vv: server 10.0.0.1:1", "u: server 10.0.0.1:2; add_upstream vV"}, "Vv: 1×1\nu: 2×1 1×1"},
		{"add_into_hash_backup", []string{v, "u: hash $x; server 10.0.0.1:5; add_upstream v backup"}, "u: 5×1 1×3b 2×1b"},
		{"add_of_a_singlet", []string{"v: server 10.0.0.1:1; combine_server_singlets", "u: add_upstream v1"}, "v: 1×1\nv1: 1×1\nu: 1×1"},
		{"singlets_default", []string{"u: " + four + "combine_server_singlets; server 10.0.0.1:4"},
			"u: 1×2 2×1 3×1b 4×1\nu1: 1×2 2×1b 3×1b\nu2: 1×2b 2×1 3×1b\nu3: 1×2b 2×1b 3×1"},
		{"singlets_align", []string{"u: " + four + "combine_server_singlets _single_ 2"},
			"u: 1×2 2×1 3×1b\nu_single_01: 1×2 2×1b 3×1b\nu_single_02: 1×2b 2×1 3×1b\nu_single_03: 1×2b 2×1b 3×1"},
		{"singlets_byname", []string{"u: server 10.0.0.1:1; server 10.0.0.1:2; combine_server_singlets byname"},
			"u: 1×1 2×1\nu10.0.0.1_1: 1×1 2×1b\nu10.0.0.1_2: 1×1b 2×1"},
		{"singlets_suffix_byname", []string{"u: server 10.0.0.1:1; combine_server_singlets _x_ byname"}, "u: 1×1\nu_x_10.0.0.1_1: 1×1"},
		{"singlets_nobackup", []string{"u: server 10.0.0.1:1; server 10.0.0.1:2; combine_server_singlets _s 2 nobackup"},
			"u: 1×1 2×1\nu_s01: 1×1 2×1d\nu_s02: 1×1d 2×1"},
		{"singlets_of_backup_nobackup", []string{"u: server 10.0.0.1:1; server 10.0.0.1:2 backup; combine_server_singlets nobackup"},
			"u: 1×1 2×1b\nu1: 1×1 2×1bd\nu2: 1×1d 2×1b"},
		{"singlets_of_down", []string{"u: server 10.0.0.1:1 down; server 10.0.0.1:2; combine_server_singlets"},
			"u: 1×1d 2×1\nu1: 1×1d 2×1b\nu2: 1×1bd 2×1"},
		{"singlets_after_add", []string{v, "u: server 10.0.0.1:5; add_upstream v; combine_server_singlets _x"},
			"u: 5×1 1×3 2×1\nu_x1: 5×1 1×3b 2×1b\nu_x2: 5×1b 1×3 2×1b\nu_x3: 5×1b 1×3b 2×1"},
		{"nobackup_as_suffix", []string{"u: server 10.0.0.1:1; combine_server_singlets nobackup 2"}, "u: 1×1\nunobackup01: 1×1"},
		{"singlets_before_servers", []string{"u: combine_server_singlets; server 10.0.0.1:1"}, "u: 1×1"},
		{"extend_least_conn_after", []string{"u: least_conn; server 10.0.0.1:1; extend_single_peers"}, "u+: 1×1"},
		{"extend_method_replaces", []string{"u: extend_single_peers; least_conn; server 10.0.0.1:1"}, "u: 1×1"},
		{"extend_then_add", []string{"u: server 10.0.0.1:1; extend_single_peers; combine_server_singlets", "w: add_upstream u"}, "u+: 1×1\nu1: 1×1\nw: 1×1"},
		{"a name is one server", []string{"u: server two.test:1; server 10.0.0.1:2; combine_server_singlets"},
			"u: 10.0.0.8:1×1 10.0.0.9:1×1 2×1\nu1: 10.0.0.8:1×1 10.0.0.9:1×1 2×1b\nu2: 10.0.0.8:1×1b 10.0.0.9:1×1b 2×1"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, problems := Expand(lines(tc.in...), ExpandOptions{Strict: true, Lookup: twoAddresses})
			for _, p := range problems {
				if !p.Warning {
					t.Error(p)
				}
			}
			text := strings.TrimSpace(summary(got))
			text = strings.TrimPrefix(strings.TrimPrefix(text, "v: 1×3 2×1\n"), "w: 3×1 4×2\n")
			if text != tc.want {
				t.Errorf("got\n%s\nwant\n%s", text, tc.want)
			}
		})
	}
}

func twoAddresses(host string) ([]netip.Addr, error) {
	if host == "two.test" {
		return []netip.Addr{netip.MustParseAddr("10.0.0.8"), netip.MustParseAddr("10.0.0.9")}, nil
	}
	return nil, fmt.Errorf("no such host %s", host)
}

// TestExpandAttributesComeAlong: add_upstream copies all parameters, and keys are of the new group.
func TestExpandAttributesComeAlong(t *testing.T) {
	got, problems := Expand(lines("v: server 10.0.0.1:1 max_fails=2 fail_timeout=1s weight=4 max_conns=3 slow_start=5s route=r", "u: add_upstream v; add_upstream v"), ExpandOptions{})
	checkProblem(t, problems, "")
	from, to := got.Upstreams[0].Peers[0], got.Upstreams[1].Peers
	for i, p := range to {
		want := from
		want.Key = PeerKey{Upstream: "u", Server: "10.0.0.1:1", Addr: "10.0.0.1:1", Ordinal: i}
		if p != want {
			t.Errorf("peer %d: %+v, want %+v", i, p, want)
		}
	}
}

// TestExpandPublishedIsLenient: a published topology has no order, and may be empty.
func TestExpandPublishedIsLenient(t *testing.T) {
	c := lines("u: add_upstream v", "v: server 10.0.0.1:1", "none: least_conn", "upstrand s: upstream later; upstream ~^l", "later: server 10.0.0.1:2")
	got, problems := Expand(c, ExpandOptions{})
	checkProblem(t, problems, "")
	if text := summary(got); text != "u: 1×1\nv: 1×1\nnone:\nlater: 2×1\n" || len(got.Upstrands[0].Members) != 1 {
		t.Errorf("%s%+v", text, got.Upstrands[0])
	}
	_, problems = Expand(c, ExpandOptions{Strict: true})
	if len(problems) != 3 { // u's source, none's servers, the name in s
		t.Errorf("problems of a file: %v", problems)
	}
}

func TestExpandRecursion(t *testing.T) {
	got, problems := Expand(lines("a: server 10.0.0.1:1; add_upstream b", "b: server 10.0.0.1:2; add_upstream a"), ExpandOptions{})
	checkProblem(t, problems, `upstream "a" makes recursion`)
	if text := summary(got); text != "a: 1×1 2×1\nb: 2×1\n" {
		t.Error(text)
	}
}

// TestExpandSingletYields: in a published topology a declared or derived name beats that of a singlet.
func TestExpandSingletYields(t *testing.T) {
	got, problems := Expand(lines("u: server 10.0.0.1:1; combine_server_singlets", "u1: server 10.0.0.1:2"), ExpandOptions{})
	checkProblem(t, problems, `duplicate upstream "u1"`)
	if text := summary(got); text != "u: 1×1\nu1: 2×1\n" {
		t.Error(text)
	}
}

// TestExpanderFollowsSources: a group is expanded anew when what it adds, or the answer for a name, is another.
func TestExpanderFollowsSources(t *testing.T) {
	addr := "10.0.0.8"
	x := NewExpander(ExpandOptions{Lookup: func(string) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(addr)}, nil }})
	expand := func(texts ...string) *Expanded {
		got, problems := x.Expand(lines(texts...))
		checkProblem(t, problems, "")
		return got
	}
	texts := []string{"v: server a.test:1", "u: add_upstream v; combine_server_singlets", "w: add_upstream u1", "other: server 10.0.0.1:9"}
	one, same := expand(texts...), expand(texts...)
	for i := range one.Upstreams {
		if one.Upstreams[i] != same.Upstreams[i] {
			t.Errorf("%s was expanded again without a reason", one.Upstreams[i].Name)
		}
	}
	addr = "10.0.0.9"
	two := expand(texts...)
	if text := summary(two); text != "v: 10.0.0.9:1×1\nu: 10.0.0.9:1×1\nu1: 10.0.0.9:1×1\nw: 10.0.0.9:1×1\nother: 9×1\n" {
		t.Error(text)
	}
	if two.Upstreams[4] != one.Upstreams[4] {
		t.Error("a group without names was expanded again")
	}
	texts[0] = "v: server 10.0.0.1:5"
	if text := summary(expand(texts...)); text != "v: 5×1\nu: 5×1\nu1: 5×1\nw: 5×1\nother: 9×1\n" {
		t.Error(text)
	}
}
