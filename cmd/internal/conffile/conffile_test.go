package conffile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/confgen/dialect"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/site"
)

// What the dialect lets through, a site must carry out; and a site must know nothing that no file can say.
func TestTheDialectAndTheSiteKnowTheSameDirectives(t *testing.T) {
	// These make the structure of a file or belong to upstreams, which others read.
	elsewhere := []string{"http", "if", "include", "location", "server", "upstream", "upstrand", "resolver", "resolver_timeout"}
	carried := site.Directives()
	supported := map[string]bool{}
	for _, d := range dialect.Directives() {
		if d.Class != dialect.Supported || d.In&(dialect.HTTP|dialect.Server|dialect.Location) == 0 || slices.Contains(elsewhere, d.Name) {
			continue
		}
		supported[d.Name] = true
		if !slices.Contains(carried, d.Name) {
			t.Errorf("the dialect says that %s is supported, and no site carries it out", d.Name)
		}
	}
	for _, name := range carried {
		if !supported[name] && !slices.Contains(elsewhere, name) && name != "alias" { // the site refuses it too
			t.Errorf("a site carries %s out, and the dialect lets no file say it", name)
		}
	}
	if len(supported) < 80 {
		t.Errorf("only %d directives were looked at", len(supported))
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.conf")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Faults of the syntax, of an upstream and of a location are told at once, in the order of the lines.
func TestAllFaultsAreToldAtOnce(t *testing.T) {
	path := file(t, `upstream u {
  server 10.0.0.1:x;
  least_con;
}
server {
  listen 8080;
  location / { proxy_pass http://v$nothing; }
  lua_x 1;
}
`)
	for name, look := range map[string]func(string, bool) (*File, error){"check": Check, "read": Read} {
		t.Run(name, func(t *testing.T) {
			_, err := look(path, false)
			if err == nil {
				t.Fatal("no faults")
			}
			lines := strings.Split(err.Error(), "\n")
			want := []string{":2: server:", ":3: least_con:", ":7: proxy_pass:", ":8: lua_x:"}
			if len(lines) != len(want) {
				t.Fatalf("%d faults, want %d:\n%v", len(lines), len(want), err)
			}
			for i, w := range want {
				if !strings.HasPrefix(lines[i], path+w) {
					t.Errorf("fault %d is %q, want %q", i+1, lines[i], path+w)
				}
			}
		})
	}
}

// A log is not made, a name is not looked up.
func TestCheckTouchesNothing(t *testing.T) {
	log := filepath.Join(t.TempDir(), "access.log")
	path := file(t, `server { listen 8080; access_log `+log+`; location / { proxy_pass http://no.such.host.invalid:8080; } }`)
	f, err := Check(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Read) != 1 || f.Read[0] != path {
		t.Errorf("read %q", f.Read)
	}
	if _, err := os.Stat(log); err == nil {
		t.Error("the log was made")
	}
}

// What can't be logged to is told by whoever looks at a file, as it is by whoever serves it; not by who explains it.
func TestALogThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for name, log := range map[string]string{"folder": filepath.Join(dir, "no", "x.log"), "no file": dir} {
		path := file(t, "server {\n listen 8080;\n access_log "+log+";\n}\n")
		_, checked := Check(path, false)
		for what, err := range map[string]error{"check": checked, "usable": Usable(path, false)} {
			if err == nil || !strings.HasPrefix(err.Error(), path+":3: access_log: open the access log: ") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if _, err := Part(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A fault that says the file is not told the file again.
func TestSummary(t *testing.T) {
	for text, want := range map[string]string{"p.conf:5: bad": "p.conf:5: bad", "bad": "p.conf can't be used: bad", "p.conf:5: bad\np.conf:6: worse": "p.conf can't be used, 2 faults:\np.conf:5: bad\np.conf:6: worse"} {
		if got := Summary("p.conf", errors.New(text)).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What is right and not built yet can be checked; it is for those who serve that it counts as wrong.
func TestNotBuiltYet(t *testing.T) {
	bad, later := topology.Fault{Line: 1, Reason: "bad"}, topology.Fault{Line: 2, Reason: "later", NotBuilt: true}
	if w, l := notBuilt([]topology.Fault{bad, later}); len(w) != 1 || w[0] != bad || len(l) != 1 || l[0] != later {
		t.Errorf("wrong %v, later %v", w, l)
	}
	if w, l := notBuilt([]topology.Fault{later}); w != nil || len(l) != 1 {
		t.Errorf("wrong %v, later %v", w, l)
	}
}

// A file that is empty, or was cut, must not take the place of one that serves.
func TestAFileWithoutServerIsAFault(t *testing.T) {
	for _, text := range []string{"", "# all gone\n", "http {\n}\n", "upstream u { server 10.0.0.1:80; }\n"} {
		path := file(t, text)
		want := path + ":1: has no server block, so nothing would be served; allowed: server { listen …; … }"
		for what, look := range map[string]func(string, bool) (*File, error){"read": Read, "check": Check} {
			for _, published := range []bool{false, true} {
				if _, err := look(path, published); err == nil || err.Error() != want {
					t.Errorf("%s of %q, published %v: %v", what, text, published, err)
				}
			}
		}
	}
}
