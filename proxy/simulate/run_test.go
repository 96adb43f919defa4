package simulate

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy"
)

// played runs a scenario over a configuration, both as texts.
func played(t *testing.T, conf, scenario string, o Options) (string, error) {
	t.Helper()
	s, err := ParseScenario("scenario", []byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = Run(context.Background(), &out, file(t, conf), s, o)
	return out.String(), err
}

func text(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The article's case: weights 10 and 1, two failed connects at night, and the order of the next 30 requests.
func TestNight(t *testing.T) {
	out, err := played(t, text(t, "night.conf"), text(t, "night.scn"), Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	golden(t, "night.txt", out)
}

// What the page shows is what is printed.
func TestThePageShowsTheNight(t *testing.T) {
	raw, err := os.ReadFile("SCENARIOS.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	lines := strings.SplitAfter(text(t, "night.txt"), "\n")
	for what, shown := range map[string]string{
		"testdata/night.conf": "```nginx\n" + text(t, "night.conf"), "testdata/night.scn": "```\n" + text(t, "night.scn"),
		"the beginning of testdata/night.txt": "```\n" + strings.Join(lines[:25], ""),
	} {
		if !strings.Contains(page, shown+"```\n") {
			t.Errorf("%s is not in SCENARIOS.md as it is", what)
		}
	}
	for name := range commands {
		if !strings.Contains(page, "`"+name+" ") && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("command %s is not in SCENARIOS.md", name)
		}
	}
}

var update = flag.Bool("update", false, "write what is printed to testdata")

// golden compares with a file of testdata; -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := text(t, name); got != want {
		t.Errorf("not as in testdata/%s (go test -run %s -update writes it; understand the difference first):\n%s", name, t.Name(), got)
	}
}

func TestUnmetExpectationsAreTold(t *testing.T) {
	out, err := played(t, text(t, "night.conf"), "request GET / times=3\nexpect b a a\nexpect status 200 200 404\n", Options{})
	if !errors.Is(err, ErrUnmet) {
		t.Fatalf("error %v, want ErrUnmet", err)
	}
	for _, want := range []string{"scenario:2: ", "request 1: expected b, got a", "scenario:3: ", "request 3: expected 404, got 200"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told in: %v", want, err)
		}
	}
	if !strings.Contains(out, "totals: 3 requests") {
		t.Errorf("the scenario was not played to its end:\n%s", out)
	}
}

const two = `upstream app { server a; server b; } server { listen 80; location / { proxy_pass http://app; proxy_read_timeout 5s; proxy_connect_timeout 2s; } }`

func TestScenarios(t *testing.T) {
	for name, c := range map[string]struct{ conf, scenario string }{
		"timeouts move the clock": {two, `
			server a hang
			request GET /
			expect a,b
			state app
			server a drop
			wait 11s
			request GET / times=3
			expect b b a,b`},
		"held requests are told as held": {
			`upstream app { least_conn; server a; server b; } server { listen 80; location / { proxy_pass http://app; } }`, `
			hold k GET /
			expect a
			request GET / times=3
			expect b b b
			release k
			request GET / times=2
			expect b a`},
		"held requests give up in time": {two, `
			hold k GET /
			expect a
			wait 4s
			request GET /
			expect b
			wait 2s
			request GET / times=2
			expect b b
			release k`},
		"joins, leaves and changes keep the rotation": {two, `
			request GET /
			expect a
			join app c
			request GET / times=2
			expect b c
			leave app b
			change app a weight=2
			request GET / times=3
			expect a a a
			change app c down
			request GET / times=2
			expect a a
			change app c -down
			request GET / times=3
			expect c a a`},
		"a file without server gets one": {"upstream u { server a; server b; } upstream v { server c; }", `
			request GET / /u/x /v times=2
			expect a b c a b c`},
		"statuses": {two, `
			server a status:404
			request GET / times=2
			expect status 404 200
			server a b refuse
			request GET /
			expect a,b
			expect status 502`},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := played(t, c.conf, c.scenario, Options{}); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A held request that gives up goes on to another server, and that is told too.
func TestHeldRequestsTellTheirPicks(t *testing.T) {
	out, err := played(t, two, "hold k GET /\nwait 6s\nrelease k", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"+0.000s  app          a                held", "+5.000s  app          b                200", "k, held until now, is answered 200 after a,b",
		"totals: 1 requests, 2 picks"}
	at := 0
	for _, w := range want {
		i := strings.Index(out[at:], w)
		if i < 0 {
			t.Fatalf("%q is not told, or not in its turn, in:\n%s", w, out)
		}
		at += i
	}
}

func TestRunFaults(t *testing.T) {
	for name, c := range map[string]struct{ scenario, want string }{
		"unknown server":      {"server z refuse", "scenario:1: no server z in the configuration; servers: a, b"},
		"unknown upstream":    {"state nowhere", "no upstream nowhere"},
		"nothing held":        {"release k", "no request k is held"},
		"held twice":          {"hold k GET /\nhold k GET /", "scenario:2: a request k is held already"},
		"reload without file": {"reload other.conf", "no other configuration can be read"},
		"leave of a stranger": {"leave app z", "no line server z"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := played(t, two, c.scenario, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestRunIsDeterministic(t *testing.T) {
	conf := `upstream app { random; server a; server b; server c; } server { listen 80; location / { proxy_pass http://app; } }`
	var outs [3]string
	for i, seed := range []uint64{1, 1, 2} {
		out, err := played(t, conf, "request GET / times=50", Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		outs[i] = out
	}
	if outs[0] != outs[1] {
		t.Error("the same seed gave another order")
	}
	if outs[0] == outs[2] {
		t.Error("another seed gave the same order")
	}
}

func TestExplainedPicks(t *testing.T) {
	out, err := played(t, two, "server a refuse\nrequest GET /", Options{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"* a                weight 1    current      0 -> -1     effective    1 -> 1    eligible",
		"b                weight 1    current      0 -> 1      effective    1 -> 1    eligible, passed over by order",
		"tried, debt 1, fails 1", "nobody else among all that could be given",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not told in:\n%s", want, out)
		}
	}
}

// With Explain a walk's steps stand among its picks, in their order; without it there are none.
func TestExplainedWalks(t *testing.T) {
	scenario := "server a1 a2 refuse\nrequest GET / times=2\nexpect a1,a2,b1 b1"
	out, err := played(t, ring, scenario, Options{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	rest := out
	for _, want := range []string{"pick request", "1  ring: begins at a", "a1   ", "a2   ", "1  ring: a came to an error (502), which is listed: on to b", "b1   ",
		"1  ring: b came to 200", "2  ring: begins at b", "b1   ", "2  ring: b came to 200", "totals: 2 requests"} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is not told, or not there, in:\n%s", want, out)
		}
		rest = after
	}
	if out, err := played(t, ring, scenario, Options{}); err != nil || strings.Contains(out, "ring:") {
		t.Errorf("steps without being asked for: %v\n%s", err, out)
	}
}

// Totals that were printed are not followed by empty ones.
func TestTotalsAtTheEnd(t *testing.T) {
	for scenario, want := range map[string]int{"request GET /": 1, "request GET /\ntotals": 1, "request GET /\ntotals\nrequest GET /": 2, "": 1, "totals": 1} {
		if out, err := played(t, two, scenario, Options{}); err != nil || strings.Count(out, "totals: ") != want {
			t.Errorf("%q: want %d times, %v\n%s", scenario, want, err, out)
		}
	}
}

func TestCSV(t *testing.T) {
	var rows bytes.Buffer
	if _, err := played(t, two, "request GET / times=2", Options{CSV: &rows, Totals: true}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(rows.String()), "\n")
	if len(lines) != 1+2*2 || !strings.HasPrefix(lines[0], "pick,request,seconds") {
		t.Fatalf("rows:\n%s", rows.String())
	}
	rows.Reset()
	if _, err := played(t, two, "wait 1s", Options{CSV: &rows}); err != nil || !strings.HasPrefix(rows.String(), "pick,request,seconds") {
		t.Errorf("no pick: %v, %q", err, rows.String())
	}
	if want := "1,1,0.000,app,main,1,a,"; !strings.HasPrefix(lines[1], want) {
		t.Errorf("row %q, want %q…", lines[1], want)
	}
}

func TestReloadReadsAnotherFile(t *testing.T) {
	other := file(t, strings.Replace(two, "server b;", "server c;", 1))
	o := Options{Open: func(name string) (*proxy.File, error) {
		if name != "other.conf" {
			return nil, errors.New("no such file")
		}
		return other, nil
	}}
	out, err := played(t, two, "request GET /\nexpect a\nreload other.conf\nrequest GET / times=2\nexpect c a\nreload\nrequest GET /\nexpect c", o)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// BenchmarkTotals is a request of a long run of which only totals are told: op is one request.
func BenchmarkTotals(b *testing.B) {
	t := &testing.T{}
	f := file(t, two)
	s := &Scenario{name: "bench", steps: []line{{1, &requestStep{template: &template{method: "GET", targets: []string{"/"}, times: b.N, host: "h", from: loopback, local: arrival}}}}}
	b.ReportAllocs()
	if err := Run(context.Background(), &bytes.Buffer{}, f, s, Options{Totals: true}); err != nil {
		b.Fatal(err)
	}
}
