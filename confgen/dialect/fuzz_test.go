package dialect

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// checkOf checks a text that can include only itself and a small other one.
func checkOf(text []byte) report {
	files := map[string]string{"dir/a.conf": string(text), "dir/b.conf": "server 10.0.0.1;\n"}
	return check("dir/a.conf", Options{
		ReadFile: func(name string) ([]byte, error) {
			if text, ok := files[name]; ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		},
		Glob: func(pattern string) ([]string, error) {
			_, err := filepath.Match(pattern, "x")
			return []string{"dir/b.conf"}, err
		},
	})
}

// FuzzRead: whatever the bytes, there is an end, each fault has a place, they are sorted, and what is accepted is in
// the table and can be published.
func FuzzRead(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.conf")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("upstream u { include b.conf; include *.conf; include a.conf; }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := checkOf(text)
		for i, fault := range got.faults {
			if fault.File == "" || fault.Reason == "" || len(fault.Error()) > 2000 {
				t.Errorf("fault %+v", fault)
			}
			if i > 0 && got.faults[i-1].File == fault.File && got.faults[i-1].Line > fault.Line {
				t.Errorf("not sorted: %v", got.faults)
			}
		}
		if len(got.faults) > 0 {
			return
		}
		if err := got.doc.Config.Validate(); err != nil && !strings.Contains(err.Error(), "twice") { // nginx takes two upstrands of a name
			t.Errorf("accepted, and can't be published: %v", err)
		}
		inTable(t, got.doc.Site, HTTP)
	})
}

func inTable(t *testing.T, nodes []*topology.Node, in Context) {
	for _, n := range nodes {
		row, _, here := find(n.Name, in)
		if !here || row.Class == Noticed || row.Block != n.HasBlock {
			t.Errorf("%s in %s: %+v", n, in, row)
		}
		if place := inside(n.Name, in); n.HasBlock && place != Entries {
			inTable(t, n.Block, place)
		}
	}
}

func TestHostileText(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       string // in a fault
	}{
		{"deep nesting", strings.Repeat("a {", 20_000), "too deep"},
		{"deep nesting, closed", "http {" + strings.Repeat("a {", 100) + strings.Repeat("}", 101), "too deep"},
		{"a word without end", "http { server { return 200 " + strings.Repeat("x", 64<<10), "too long a word"},
		{"a name without end", strings.Repeat("y", 64<<10) + ";", "too long a word"},
		{"a block without end", "http { server { return 200 x;", "unexpected end of file"},
		{"a word of nginx's length", "http { server { return 200 " + strings.Repeat("x", maxWord) + "; } }", ""},
		{"a word that nginx refuses", "http { server { return 200 '" + strings.Repeat("x", maxWord+1) + "'; } }", "too long a word"},
		{"many templates in a comment", "#" + strings.Repeat("{{a}}", 20_000) + "\n{{ b }}", ":2: this is a template"},
		{"many resolvers", strings.Repeat("resolver 1.1.1.1;", 3000), ""},
		{"many words", "http { server { listen " + strings.Repeat("x ", 30_000) + "; } }", ""},
		{"many faults", strings.Repeat("bogus;\n", 5_000), "unknown directive"},
		{"many closing braces", strings.Repeat("}", 20_000), "unexpected \"}\""},
		{"too large", "http { }" + strings.Repeat("\n", maxFile), "too large"},
		{"NUL", "http {\n\x00", "control character"},
		{"only marks", "{};;{}", "unexpected"},
		{"includes itself many times", strings.Repeat("include a.conf;", 3000), "includes itself"},
		{"a bad pattern", "include [;", "bad pattern"},
		{"a folder of names", "upstream " + strings.Repeat("u", 300) + " { server 10.0.0.1; }", "bad name"},
		{"escapes in a name", `upstream "a\nb" { server 10.0.0.1; }`, "bad name"},
		{"escapes in an argument", `upstream a { hash "a\tb"; server 10.0.0.1; }`, "control character"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			began := time.Now()
			got := checkOf([]byte(tc.text))
			switch {
			case tc.want == "" && len(got.faults) > 0:
				t.Errorf("faults %v", got.faults)
			case tc.want != "" && !slices.ContainsFunc(got.faults, func(f topology.Fault) bool { return strings.Contains(f.Error(), tc.want) }):
				t.Errorf("faults %.300v, want %q", got.faults, tc.want)
			}
			if len(got.faults) > maxFaults+1 {
				t.Errorf("%d faults", len(got.faults))
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestIncludesAreBounded: files that include the next one twice each would be read 2^n times, and a large one that many
// lines include takes memory each time.
func TestIncludesAreBounded(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		text       func(name string) string
	}{
		{"each the next one twice", "too many files", func(name string) string {
			next := string(rune(name[len(name)-1] + 1))
			return "include " + next + "; include " + next + ";"
		}},
		{"a large one many times", "all files together are too large", func(name string) string {
			if name == "0" {
				return strings.Repeat("include large;", 1000)
			}
			return strings.Repeat("\n", 1000)
		}},
		{"many directives many times", "too many directives", func(name string) string {
			if name == "0" {
				return strings.Repeat("include many;", 1000)
			}
			return strings.Repeat("a;", 100)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reads := 0
			_, faults := read("0", Options{ReadFile: func(name string) ([]byte, error) {
				reads++
				return []byte(tc.text(name)), nil
			}}, bounds{files: 30, bytes: 20_000, directives: 1000})
			if reads > 30 || !slices.ContainsFunc(faults, func(f topology.Fault) bool { return strings.Contains(f.Reason, tc.want) }) {
				t.Errorf("%d reads, faults %.300v", reads, faults)
			}
		})
	}
}
