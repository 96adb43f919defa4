package topology

import (
	"fmt"
	"strings"
	"testing"
)

func plain(n int) []Directive {
	var out []Directive
	for i := range n {
		out = append(out, Directive{"server", fmt.Sprintf("10.0.%d.%d", i/250, i%250)})
	}
	return out
}

// doubling is upstreams of which each adds the one above twice.
func doubling(n int, first ...Directive) *Config {
	c := &Config{Upstreams: []Upstream{{Name: "u0", Origin: Declared, Directives: first}}}
	for i := 1; i <= n; i++ {
		line := Directive{"add_upstream", fmt.Sprint("u", i-1)}
		c.Upstreams = append(c.Upstreams, Upstream{Name: fmt.Sprint("u", i), Origin: Declared, Rank: i, Directives: []Directive{line, line}})
	}
	return c
}

// TestCopiesAreBounded: a few lines that ask for more servers than any memory holds are problems that say so.
func TestCopiesAreBounded(t *testing.T) {
	many := Upstream{Name: "many", Origin: Declared, Directives: append(plain(32), Directive{"combine_server_singlets"})}
	for _, tc := range []struct {
		name   string
		config *Config
	}{
		{"singlets of many", &Config{Upstreams: []Upstream{many}}},
		{"each doubles the one above", doubling(25, plain(1)...)},
		{"likewise with a name that is not known yet", doubling(25, Directive{"server", "name.example", "resolve"})},
	} {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.name, ", strict ", strict), func(t *testing.T) {
				x := NewExpander(ExpandOptions{Strict: strict, Query: func(Query) ([]Answer, error) { return nil, nil }})
				x.most = 1000
				for range 2 { // what is kept from the first time must not change the result
					got, problems := x.Expand(tc.config)
					told, peers := false, 0
					for _, p := range problems {
						told = told || strings.Contains(p.Reason, "copies of servers")
					}
					for _, g := range got.Upstreams {
						peers += len(g.Peers)
					}
					if !told || peers > 2*x.most {
						t.Errorf("%d peers, problems %.300v", peers, problems)
					}
				}
			})
		}
	}
}

// TestCopiesFindRoomAgain when others give it up, also in an Expander that remembers the refusal.
func TestCopiesFindRoomAgain(t *testing.T) {
	singlets := func(name string, n int) Upstream {
		return Upstream{Name: name, Origin: Declared, Directives: append(plain(n), Directive{"combine_server_singlets"})}
	}
	x := NewExpander(ExpandOptions{})
	x.most = 1000
	_, problems := x.Expand(&Config{Upstreams: []Upstream{singlets("a", 25), singlets("b", 25)}})
	checkProblem(t, problems, "makes 625 copies of servers, 625 are there already; want at most 1000")
	got, problems := x.Expand(&Config{Upstreams: []Upstream{singlets("a", 2), singlets("b", 25)}})
	checkProblem(t, problems, "")
	if n := len(got.Upstreams); n != 1+2+1+25 {
		t.Errorf("%d upstreams", n)
	}
	_, problems = x.Expand(&Config{Upstreams: []Upstream{singlets("a", 25), singlets("b", 25)}})
	if len(problems) != 1 {
		t.Errorf("what was kept counts too: %v", problems)
	}
}

func TestRingIsBounded(t *testing.T) {
	servers := []Directive{{"hash", "$uri", "consistent"}, {"server", "10.0.0.1", "weight=60000"}, {"server", "10.0.0.2", "weight=40001"}}
	for _, strict := range []bool{false, true} {
		_, problems := Expand(&Config{Upstreams: []Upstream{{Name: "u", Origin: Declared, Directives: servers}}}, ExpandOptions{Strict: strict})
		checkProblem(t, problems, "weights add up to 100001")
		if len(problems) == 1 && (problems[0].Warning == strict || problems[0].Line != 0) {
			t.Errorf("strict %v: %+v", strict, problems[0])
		}
	}
	for _, fine := range [][]Directive{
		{servers[0], servers[1], {"server", "10.0.0.2", "weight=40000"}},
		{{"hash", "$uri"}, servers[1], servers[2]},
	} {
		_, problems := Expand(&Config{Upstreams: []Upstream{{Name: "u", Origin: Declared, Directives: fine}}}, ExpandOptions{Strict: true})
		checkProblem(t, problems, "")
	}
}

func TestPatternIsBounded(t *testing.T) {
	c := &Config{Upstrands: []Upstrand{{Name: "s", Origin: Declared, Directives: []Directive{{"upstream", "~" + strings.Repeat("a", maxPattern+1)}}}}}
	_, problems := Expand(c, ExpandOptions{})
	checkProblem(t, problems, "the pattern is longer than 4096 bytes")
}
