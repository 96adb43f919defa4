package conffile

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/shapes/*.want anew; look at the difference before you keep it")

// leastShapes is how many there must be: a glob that finds nothing would check nothing.
const leastShapes = 40

// TestShapes checks whole files as people have them. The first line of testdata/shapes/NAME.conf, or NAME/nginx.conf with
// what it includes, says whether it loads and which lines are refused; NAME.want has every word that is said of it.
func TestShapes(t *testing.T) {
	files, err := filepath.Glob("testdata/shapes/*.conf")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("testdata/shapes/*/nginx.conf")
	if err != nil || len(files)+len(folders) < leastShapes {
		t.Fatal(len(files), len(folders), err)
	}
	for _, file := range append(files, folders...) {
		name := strings.TrimSuffix(strings.TrimSuffix(file, "/nginx.conf"), ".conf")
		t.Run(filepath.Base(name), func(t *testing.T) {
			f, err := Check(file, false)
			var faults proxy.Faults
			if err != nil && !errors.As(err, &faults) {
				t.Fatal(err)
			}
			if got, want := verdict(faults), firstLine(t, file); got != want {
				t.Errorf("it %s, and is to be one that %s", got, want)
			}
			got := said("notice", f.Notices) + said("fault", faults)
			if *rewrite {
				if err := os.WriteFile(name+".want", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name + ".want")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// verdict is "loads", or "refused: " with the lines.
func verdict(faults []topology.Fault) string {
	if len(faults) == 0 {
		return "loads"
	}
	var lines []int
	for _, f := range faults {
		lines = append(lines, f.Line)
	}
	slices.Sort(lines)
	return "refused: " + strings.Trim(fmt.Sprint(slices.Compact(lines)), "[]")
}

func firstLine(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimPrefix(line, "# ")
}

// said is a line for each notice or fault, with the file's name only.
func said(what string, all []topology.Fault) string {
	var b strings.Builder
	for _, f := range all {
		f.File = filepath.Base(f.File)
		fmt.Fprintf(&b, "%s %s\n", what, f.Error())
	}
	return b.String()
}
