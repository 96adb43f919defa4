package conformance

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// caseFile names, in the environment of a process that carries out one case in a network namespace of its own, the folder
// with the case.
const caseFile = "CONFORMANCE_CASE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(caseFile); dir != "" {
		os.Exit(beCase(dir))
	}
	flag.Parse()
	// The cases mostly wait.
	if p := flag.Lookup("test.parallel"); p.Value.String() == fmt.Sprint(runtime.GOMAXPROCS(0)) {
		_ = p.Value.Set(fmt.Sprint(3 * runtime.GOMAXPROCS(0)))
	}
	os.Exit(m.Run())
}

// beCase is this program as the runner of one case.
func beCase(dir string) int {
	var j Job
	text, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err == nil {
		err = loopbackUp()
	}
	v := Verdict{Diffs: []string{fmt.Sprint(err)}}
	if err == nil {
		v = j.Run()
	}
	text, err = json.Marshal(v)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "verdict.json"), text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// inNamespace carries out a job in a process and a network namespace of its own.
func inNamespace(j Job) Verdict {
	text, err := json.Marshal(j)
	if err == nil {
		err = os.WriteFile(filepath.Join(j.Dir, "case.json"), text, 0o644)
	}
	if err != nil {
		return Verdict{Diffs: []string{err.Error()}}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), caseFile+"="+j.Dir)
	cmd.SysProcAttr = ownNetwork()
	said, err := cmd.CombinedOutput()
	var v Verdict
	if err == nil {
		text, err = os.ReadFile(filepath.Join(j.Dir, "verdict.json"))
	}
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		v.Diffs = []string{fmt.Sprintf("the runner of the case: %v %s", err, said)}
	}
	return v
}

// namespaces tells why this machine gives no network namespaces; empty when it does.
func namespaces(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = ownNetwork()
	if err := cmd.Run(); err != nil || cmd.SysProcAttr == nil {
		return fmt.Sprintf("no network namespace of its own for each case (it needs Linux, and root or user namespaces): %v", err)
	}
	return ""
}

// program is what is tested: upstrand as it is delivered, or another by CONFORMANCE_CMD and CONFORMANCE_CHECK, words
// with {conf} and {dir} in them.
func program(t *testing.T) Job {
	t.Helper()
	if text := os.Getenv("CONFORMANCE_CMD"); text != "" {
		j := Job{Command: strings.Fields(text), Nginx: strings.Contains(text, "nginx")}
		if check := os.Getenv("CONFORMANCE_CHECK"); check != "" {
			j.Check = strings.Fields(check)
		}
		return j
	}
	bin := filepath.Join(t.TempDir(), "upstrand")
	if ready := os.Getenv("UPSTRAND_BINARIES"); ready != "" {
		bin = filepath.Join(ready, "upstrand")
	} else {
		cmd := exec.Command("go", "build", "-o", bin, "../../cmd/upstrand")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
	}
	return Job{
		Command: []string{bin, "proxy", "--conf", "{conf}", "--log-format", "json"},
		Check:   []string{bin, "topology", "check", "{conf}"},
	}
}

// attempts is how often a case may try: on a loaded machine a held request can come over its timeout.
const attempts = 3

// try runs a case until it passes.
func try(t *testing.T, j Job) (v Verdict) {
	t.Helper()
	root := t.TempDir()
	for n := range attempts {
		j.Dir = filepath.Join(root, fmt.Sprint(n))
		if err := os.Mkdir(j.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if v = inNamespace(j); len(v.Diffs) == 0 {
			return v
		}
		t.Logf("attempt %d, %v: %s", n+1, time.Since(began).Round(time.Millisecond), strings.Join(v.Diffs[:min(len(v.Diffs), 3)], "\n  "))
	}
	return v
}
