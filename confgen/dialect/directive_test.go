package dialect

import (
	"slices"
	"testing"

	"github.com/upstrand/upstrand/confgen/topology"
)

// TestTable: the table is in itself right.
func TestTable(t *testing.T) {
	seen := map[string]Context{}
	for _, d := range Directives() {
		if both := seen[d.Name] & d.In; both != 0 {
			t.Errorf("%s stands twice for %s", d.Name, both)
		}
		seen[d.Name] |= d.In
		if d.In == 0 || d.Min < 0 || (d.Max != many && d.Max < d.Min) {
			t.Errorf("%+v", d)
		}
		if (d.Why == "") != (d.Class == Supported) {
			t.Errorf("%s: only what is not carried out has a reason: %+v", d.Name, d)
		}
	}
	for name := range judges {
		if seen[name] == 0 {
			t.Errorf("%s has a judge and is in no table", name)
		}
	}
}

// TestUpstreamTable: the table and topology.Expand know the same lines of an upstream.
func TestUpstreamTable(t *testing.T) {
	for _, name := range topology.UpstreamDirectives() {
		if row, _, here := find(name, Upstream); !here || row.Class != Supported {
			t.Errorf("%s is carried out in an upstream and not in the table", name)
		}
	}
	for _, d := range Directives() {
		if d.In&Upstream != 0 && d.Class == Supported && d.Name != "include" && !slices.Contains(topology.UpstreamDirectives(), d.Name) {
			t.Errorf("%s is in the table and not carried out in an upstream", d.Name)
		}
	}
}

func TestNear(t *testing.T) {
	for word, want := range map[string]string{"proxy_conect_timeout": "proxy_connect_timeout", "lsten": "listen", "kepalive_timeout": "keepalive_timeout", "frobnicate": "", "x": ""} {
		if got := near(word, Server); got != want {
			t.Errorf("near(%q) = %q, want %q", word, got, want)
		}
	}
}
