package ops

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/registry/registrytest"
)

// typed runs a command line with an answer from a person.
func typed(t *testing.T, registry, answer, line string) string {
	t.Helper()
	var out bytes.Buffer
	root := &cobra.Command{Use: "upstrand", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	root.SetArgs(append(strings.Fields(line), "--registry", registry))
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetIn(strings.NewReader(answer))
	if err := root.ExecuteContext(t.Context()); err != nil {
		fmt.Fprintln(&out, "error:", err)
	}
	return "$ upstrand " + line + "\n" + out.String() + "\n"
}

// The life of a file, as an operator sees it.
func TestADeclaredFileIsHandled(t *testing.T) {
	server, _ := fleet(t)
	var text strings.Builder
	for _, step := range []struct{ line, answer string }{
		{"topology declared ls", ""},
		{"topology apply testdata/canary.conf --author joe@host --dry-run", ""},
		{"topology apply testdata/canary.conf --author joe@host", "n\n"},
		{"topology apply testdata/canary.conf --author joe@host --comment zone-b-first", "y\n"},
		{"topology apply testdata/canary.conf --author joe@host -y", ""},
		{"topology apply testdata/canary2.conf --author ann@host --yes", ""},
		{"topology apply testdata/faults.conf --author ann@host --yes", ""},
		{"topology apply testdata/faults.conf --author ann@host --yes --name aside -o json", ""},
		{"topology declared ls", ""},
		{"topology declared show main", ""},
		{"topology declared show main --revision 1 -o json", ""},
		{"topology declared rollback main 1 --author joe@host", "yes\n"},
		{"topology declared delete main --author joe@host --dry-run", ""},
		{"topology declared delete main --author joe@host -y -o json", ""},
		{"topology declared history main", ""},
		{"topology declared history main --limit 1 -o json", ""},
		{"topology declared show main", ""},
		{"topology declared show main --revision 4", ""},
		{"topology declared show main --revision 9", ""},
		{"topology declared rollback main 4 -y", ""},
		{"topology declared rollback main", ""},
		{"topology declared rollback main x", ""},
		{"topology declared delete nope -y --author x", ""},
		{"topology declared history nope", ""},
		{"topology declared", ""},
		{"topology declared list", ""},
		{"topology apply", ""},
		{"topology apply testdata/none.conf", ""},
		{"topology apply testdata/canary.conf --name A", ""},
		{"event ls --kind topology_declared", ""},
	} {
		text.WriteString(typed(t, server.URL, step.answer, step.line))
	}
	golden(t, "declared.txt", text.String())
}

// A file from standard input leaves nobody to ask.
func TestStandardInputIsAFile(t *testing.T) {
	server, _ := fleet(t)
	conf := "upstream a { server 10.0.0.1:80; }\n"
	if got := typed(t, server.URL, conf, "topology apply -"); !strings.Contains(got, "error: nobody can be asked here") {
		t.Error(got)
	}
	if got := typed(t, server.URL, conf, "topology apply - --yes"); !strings.Contains(got, "main: revision 1; the next version has it") {
		t.Error(got)
	}
	if got := typed(t, server.URL, "", "topology declared show main"); !strings.HasSuffix(got, conf+"\n") {
		t.Errorf("%q", got)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	ch := &change{in: null, out: &printer{out: io.Discard, err: io.Discard}}
	if err := ch.confirm(); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("asked on no terminal: %v", err)
	}
}

// What was shown is what is carried out, or nothing.
func TestAChangeInBetweenIsAConflict(t *testing.T) {
	server, _ := fleet(t)
	ask := &meanwhile{do: func() {
		typed(t, server.URL, "", "topology apply testdata/canary2.conf --name other -y --author ann@host")
	}}
	root := &cobra.Command{Use: "upstrand", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	root.SetArgs([]string{"topology", "apply", "testdata/canary.conf", "--registry", server.URL})
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	root.SetIn(ask)
	err := root.ExecuteContext(t.Context())
	want := "the declared topology is at revision 1, not 0: other declared by ann@host (revision 1): run the command again to see what it does now"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// meanwhile does something while a person thinks.
type meanwhile struct{ do func() }

func (m *meanwhile) Read(p []byte) (int, error) {
	m.do()
	return copy(p, "y\n"), nil
}

func TestTheVersionIsWaitedFor(t *testing.T) {
	server, db := fleet(t)
	if _, err := db.Exec("UPDATE revision SET n = 900 WHERE id = 1"); err != nil { // above all that was published
		t.Fatal(err)
	}
	line := "topology apply testdata/canary.conf -y --wait --author x"
	if got := typed(t, server.URL, "", line+" --timeout 1ms"); !strings.Contains(got, "declared as revision 1, but no version has it after 1ms: is a confgen running?") {
		t.Error(got)
	}
	out, done := &lines{to: make(chan string, 100)}, make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		done <- command(ctx, out, io.Discard, server.URL, "topology apply testdata/canary2.conf -y --wait --author x")
	}()
	for line := range out.to {
		if strings.Contains(line, "1 upstream changed") {
			break
		}
	}
	registrytest.Insert(t, db, "topology_version", registrytest.Row{"version": 77, "digest": registrytest.Digest("d"), "revision": 902})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	close(out.to)
	last := ""
	for line := range out.to {
		last = line
	}
	if last != "main: revision 2, published as version 77" {
		t.Errorf("%q", last)
	}
}

// Other bytes would be replaced on the way, and something else declared.
func TestAFileThatIsNotUTF8IsNotSent(t *testing.T) {
	server, _ := fleet(t)
	text := typed(t, server.URL, "upstream a { server 10.0.0.1:80; }\n# caf\xe9\n", "topology apply - --yes")
	if !strings.Contains(text, "error: -:2: the text is not UTF-8\n") {
		t.Error(text)
	}
	if text = typed(t, server.URL, "", "topology declared ls"); strings.Contains(text, "main") {
		t.Error(text)
	}
}

func TestAnEmptyFileIsNotApplied(t *testing.T) {
	server, _ := fleet(t)
	for _, text := range []string{"", " \n"} {
		got := typed(t, server.URL, text, "topology apply - --yes --name pools")
		if !strings.Contains(got, "error: - is empty, and all that pools declares would go: upstrand topology declared delete pools does that\n") {
			t.Error(got)
		}
	}
}
