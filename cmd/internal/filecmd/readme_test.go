package filecmd

import (
	"bytes"
	"os"
	"path/filepath"
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
	scenario, err := os.ReadFile(night + ".scn")
	if err != nil {
		t.Fatal(err)
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
	picks, steps := 0, 0
	for line := range strings.SplitSeq(part, "\n") {
		text, block := strings.CutPrefix(line, "    ")
		text = strings.TrimSpace(text)
		switch {
		case !block:
		case strings.Contains(text, "+12.500s"), strings.Contains(text, "current weight among"), strings.Contains(text, "effective  "):
			picks++
			if !said[text] {
				t.Errorf("the README has %q, simulate does not say it", text)
			}
		case strings.HasPrefix(text, "request GET"), strings.HasPrefix(text, "wait "):
			steps++
			if !strings.Contains(string(scenario), text) {
				t.Errorf("the README has %q, the scenario does not", text)
			}
		}
	}
	if picks < 10 || steps != 5 {
		t.Errorf("only %d lines of output and %d steps were compared", picks, steps)
	}
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
