package filecmd

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// run carries out one of the commands.
func run(t *testing.T, cmd *cobra.Command, args ...string) (out string, err error) {
	t.Helper()
	var b bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	cmd.SilenceErrors = true
	err = cmd.ExecuteContext(t.Context())
	return b.String(), err
}

const night = "../../../proxy/simulate/testdata/night"

// The README's example is what the commands say.
func TestTheExampleOfTheREADME(t *testing.T) {
	out, err := run(t, Simulate(), "--conf", night+".conf", "--scenario", night+".scn", "--explain")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := map[string]bool{}
	for line := range strings.SplitSeq(out, "\n") {
		said[strings.TrimSpace(line)] = true
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(readme), "### Why did it go there?")
	part, _, end := strings.Cut(part, "\n## ")
	if !ok || !end {
		t.Fatal("the README has no such part")
	}
	for _, name := range []string{night + ".conf", night + ".scn"} {
		if shown := indented(t, name); !strings.Contains(part, "\n\n"+shown+"\n") {
			t.Errorf("the README does not show %s as it is:\n%s", name, shown)
		}
	}
	compared := 0
	for line := range strings.SplitSeq(part, "\n") {
		text, block := strings.CutPrefix(line, "    ")
		text = strings.TrimSpace(text)
		if block && (pickLine.MatchString(text) || strings.Contains(text, "current weight among") || strings.Contains(text, "effective  ")) {
			compared++
			if !said[text] {
				t.Errorf("the README has %q, simulate does not say it", text)
			}
		}
	}
	if compared < 12 {
		t.Errorf("only %d lines of output were compared", compared)
	}
}

var pickLine = regexp.MustCompile(`^\d+ +\d+ +\+\d`)

// indented is a file as the README shows it.
func indented(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestExplain(t *testing.T) {
	out, err := run(t, Explain(), "--conf", night+".conf", "--request", "GET /x HTTP/1.1", "--header", "Host: shop.example", "--client", "192.0.2.7")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"host shop.example from 192.0.2.7", "night.conf:8", "goes to a ", "passed over by weight"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for name, args := range map[string][]string{
		"no file":    {"--request", "GET /"},
		"no request": {"--conf", night + ".conf", "--request", "GET"},
		"bad header": {"--conf", night + ".conf", "--header", "Host"},
		"bad client": {"--conf", night + ".conf", "--client", "me"},
	} {
		if _, err := run(t, Explain(), args...); err == nil || !strings.Contains(err.Error(), "--") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSimulateSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	scenario := filepath.Join(dir, "s.scn")
	if err := os.WriteFile(scenario, []byte("request GET /\nexpect b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(dir, "picks.csv")
	if _, err := run(t, Simulate(), "--conf", night+".conf", "--scenario", scenario, "--csv", table); err == nil || !strings.Contains(err.Error(), "expects") {
		t.Errorf("an expectation that is not met: %v", err)
	}
	if text, err := os.ReadFile(table); err != nil || bytes.Count(text, []byte("\n")) != 3 {
		t.Errorf("csv: %q, %v", text, err)
	}
	if _, err := run(t, Simulate(), "--conf", night+".conf"); err == nil || !strings.Contains(err.Error(), "--scenario FILE") {
		t.Errorf("no scenario: %v", err)
	}
}

// A file of upstreams alone can be simulated, and not be served.
func TestUpstreamsAlone(t *testing.T) {
	dir := t.TempDir()
	conf, scenario := filepath.Join(dir, "upstreams.conf"), filepath.Join(dir, "s.scn")
	for path, text := range map[string]string{conf: "upstream a { server a1; }\nupstream b { server b1; }\n", scenario: "request GET /b/x\nexpect b1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(t, Simulate(), "--conf", conf, "--scenario", scenario); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run(t, Explain(), "--conf", conf); err != nil || !strings.Contains(out, "answered 200 by a1") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run(t, Check(), conf); err == nil || !strings.Contains(out, "no server block") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		t.Helper()
		path := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := "worker_processes 4;\nevents {}\nhttp { server { listen 80; location / { return 200 ok; } } }\n"
	out, err := run(t, Check(), write(good))
	if err != nil || !strings.Contains(out, "can be used (1 file read, ") || !strings.Contains(out, "notice: ") || !strings.Contains(out, "nginx.conf:1: worker_processes:") {
		t.Errorf("good: %v\n%s", err, out)
	}
	bad := "server { listen 80; location / { proxy_pas http://x; root 7 8; } }\n"
	out, err = run(t, Check(), write(bad))
	if err == nil || !strings.Contains(out, "nginx.conf:1: proxy_pas: unknown directive; did you mean proxy_pass?") {
		t.Errorf("bad: %v\n%s", err, out)
	}
	out, err = run(t, Check(), "--json", write(bad))
	if err == nil || !strings.Contains(out, `"usable": false`) || !strings.Contains(out, `"directive": "proxy_pas"`) {
		t.Errorf("bad, as JSON: %v\n%s", err, out)
	}
	if _, err := run(t, Check()); err == nil {
		t.Error("no file is no error")
	}
}
