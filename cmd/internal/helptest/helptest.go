// Package helptest compares the --help of every command of a program with what is kept in testdata. It is for the tests of
// the binaries.
package helptest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/cli"
)

var update = flag.Bool("update", false, "write testdata/help instead of comparing with it")

// Compare renders the help of each visible command, as make's programs give it, and compares it with
// testdata/help/COMMAND.txt. make must return a fresh program that writes to w.
func Compare(t *testing.T, make func(w *bytes.Buffer) *cli.Program) {
	t.Helper()
	seen := map[string]bool{}
	for _, path := range Paths(make(&bytes.Buffer{}).Root()) {
		name := strings.Join(append([]string{"root"}, path...), "-") + ".txt"
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := make(&out).Run(t.Context(), append(path, "--help")); code != 0 {
				t.Fatalf("exit code %d: %s", code, out.String())
			}
			compare(t, filepath.Join("testdata", "help", name), out.String())
		})
	}
	kept, err := filepath.Glob("testdata/help/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range kept {
		if !seen[filepath.Base(file)] {
			t.Errorf("%s is of a command that does not exist", file)
		}
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("--help changed (go test -update, if it should):\n%s", d)
	}
}

// Paths are the arguments that lead to each visible command below cmd, itself included.
func Paths(cmd *cobra.Command) [][]string {
	all := [][]string{nil}
	for _, sub := range cmd.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		for _, path := range Paths(sub) {
			all = append(all, append([]string{sub.Name()}, path...))
		}
	}
	return all
}
