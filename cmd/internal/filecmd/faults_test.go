package filecmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A fault says what would be allowed, or where what it collides with stands.
func TestFaultsSayWhatToDo(t *testing.T) {
	const here = "nginx.conf"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a variable with a near name": {"server { listen 80; return 200 $hots; }", []string{`:1: return: no variable $hots; did you mean $host?`}},
		"a variable like none":        {"server { listen 80; return 200 $fooey_bar_baz; }", []string{`no variable $fooey_bar_baz; allowed: those of the reference, and what map,`}},
		"a variable of a map":         {"map $nowhere_at_all $y { default 1; }\nserver { listen 80; return 200 $y; }", []string{`:1: map: no variable $nowhere_at_all; allowed: those of the reference`}},
		"discover": {"upstream u { discover orders zonee=1; }\nserver { listen 80; location / { proxy_pass http://u; } }",
			[]string{`:1: discover: unknown parameter zonee; allowed: zone=NAME, version=TEXT, tag=TEXT`}},
		"an upstream twice": {"upstream u { server 10.0.0.1; }\nupstream U { server 10.0.0.2; }\nserver { listen 80; location / { proxy_pass http://u; } }",
			[]string{`:2: upstream: duplicate upstream "U"; the first is at `, here + `:1`}},
		"a location twice": {"server { listen 80;\nlocation /a { return 200; }\nlocation /a { return 201; } }",
			[]string{`:3: location: a duplicate location "/a"; the first is at `, here + `:2`}},
		"a pattern without effect": {"upstream a { server 10.0.0.1; }\nupstrand s { upstream ~^a;\nupstream ~^b; }\nupstream b { server 10.0.0.2; }\nserver { listen 80; return 200; }",
			[]string{`notice: `, here + `:3: upstream: matches none of the upstreams above it`}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), here)
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := run(t, Check(), path)
			if notice := strings.HasPrefix(c.want[0], "notice"); notice != (err == nil) {
				t.Errorf("the error is %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not said in:\n%s", want, out)
				}
			}
		})
	}
}
