package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/bench/figures"
)

// ran is a round in which a proxy took micros of its processor for each of 100,000 requests.
func ran(micros int) figures.Result {
	total := 100_000 * time.Duration(micros) * time.Microsecond
	return figures.Result{Requests: 100_000, Elapsed: 4 * time.Second, CPU: figures.CPU{User: total / 4, System: total - total/4}, P99: 3 * time.Millisecond, Longest: 7 * time.Millisecond}
}

func example() ([]*contender, []row, sheet) {
	s := sheet{
		"get-64": {
			"nginx":    {rounds: []figures.Result{ran(20), ran(40), ran(25)}, errs: make([]error, 3)},
			"upstrand": {rounds: []figures.Result{ran(10), ran(25), ran(25)}, errs: []error{nil, errors.New("2 connections waited"), nil}},
		},
		"h2-64": {
			"nginx":    {rounds: []figures.Result{ran(40)}, errs: make([]error, 1)},
			"upstrand": {rounds: make([]figures.Result, 1), errs: []error{errors.New("can't: no TLS\nsecond line")}},
		},
	}
	return []*contender{{name: "nginx", version: "1.2.3"}, {name: "upstrand"}}, chosen(rows, regexp.MustCompile("get-64|h2")), s
}

// The median of the ratios of rounds: 2 and 1 of those that count. The ratio of the medians would be another.
func TestReportTakesRatiosInsideRounds(t *testing.T) {
	list, todo, s := example()
	var out strings.Builder
	if err := report(&out, list, todo, s, "nginx"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`upstrand +70000 +4\.4 +13\.1 +1\.50 +1\.00–2\.00 +25000 +3\.00ms +7ms +2/3`,
		`1 not counted: 2 connections waited`,
		`(?m)upstrand +can't: no TLS$`,
		`nginx 1\.2\.3`,
		`(?m)^get-64 +1\.00 +1\.50$`,
		`(?m)^h2-64 +1\.00 +–$`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("nothing fits %s in\n%s", want, out.String())
		}
	}
}

func TestBenchstatHasARowForEachRoundThatCounts(t *testing.T) {
	list, todo, s := example()
	var out strings.Builder
	writeBenchstat(&out, list, todo, s)
	if n := strings.Count(out.String(), "BenchmarkProxy/row=get-64/proxy=upstrand\t100000\t"); n != 2 {
		t.Errorf("%d rounds of get-64, wanted the 2 that count:\n%s", n, out.String())
	}
	if strings.Contains(out.String(), "row=h2-64/proxy=upstrand") {
		t.Errorf("a round that does not count is in\n%s", out.String())
	}
	if want := "\t25000 cpu-ns/op\t40000 req/cpu-s\t3000000 p99-ns\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

func TestFlags(t *testing.T) {
	s, what, err := parseFlags([]string{"-rounds", "3", "-rows", "^get", "-proxies", "nginx,upstrand", "table", "memory"})
	if err != nil {
		t.Fatal(err)
	}
	if s.rounds != 3 || len(s.proxies) != 2 || len(what) != 2 || len(chosen(rows, s.rows)) != 5 {
		t.Errorf("got %+v, %v", s, what)
	}
	if _, what, err := parseFlags(nil); err != nil || len(what) != 1 || what[0] != "table" {
		t.Errorf("without arguments: %v, %v", what, err)
	}
	for _, args := range [][]string{{"-rounds", "0"}, {"-window", "1ms"}, {"-rows", "("}, {"-proxies", "nginx,envoy"}, {"tabel"}} {
		if _, _, err := parseFlags(args); err == nil || !strings.Contains(err.Error(), "allowed") && args[0] != "-rows" {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestPerf(t *testing.T) {
	got := parsePerf("# started\n\n1500;;syscalls:sys_enter_read;100;50.00;;\n0;;syscalls:sys_enter_write;1;100;;\n<not supported>;;syscalls:sys_enter_x;;;\n7;;other;1;1;;\n20;;syscalls:sys_enter_read;1;1;;\n")
	if len(got) != 1 || got["read"] != 1520 {
		t.Errorf("got %v, want read 1520", got)
	}
}

func TestMetric(t *testing.T) {
	page := "# HELP go_x y\ngo_x_total 1\ngo_x 2.5e+06\n"
	if n, err := findMetric(strings.NewReader(page), "go_x"); err != nil || n != 2.5e6 {
		t.Errorf("got %v, %v", n, err)
	}
	if _, err := findMetric(strings.NewReader(page), "go_y"); err == nil {
		t.Error("a metric that is not there is found")
	}
}

func TestConfigurationLeavesOutTLSWhereItIsNotAskedFor(t *testing.T) {
	c := &contender{doors: map[door]string{plain: "127.0.0.1:1", logged: "127.0.0.1:2", secure: "127.0.0.1:3"}}
	b := &bench{origin: "127.0.0.1:9", cert: "/c.pem", key: "/c.key"}
	with, without := servers(c, b, "/log", "ssl http2"), servers(c, b, "/log", "")
	for _, want := range []string{"listen 127.0.0.1:3 ssl http2;", "access_log /log;", "ssl_certificate /c.pem;", "server 127.0.0.1:9;"} {
		if !strings.Contains(with, want) {
			t.Errorf("no %q in\n%s", want, with)
		}
	}
	if strings.Contains(without, "ssl") || strings.Contains(without, ":3") {
		t.Errorf("TLS in\n%s", without)
	}
}

func TestFeaturesChangeTheConfiguration(t *testing.T) {
	c := &contender{doors: map[door]string{plain: "127.0.0.1:1", logged: "127.0.0.1:2", secure: "127.0.0.1:3"}}
	conf := servers(c, &bench{origin: "127.0.0.1:9"}, "/access.log", "ssl")
	for _, f := range featureList {
		if f.rewrite == nil {
			continue
		}
		got := f.rewrite(conf, c)
		if got == conf {
			t.Errorf("%s changes nothing", f.name)
		}
		if n := strings.Count(got, "server 127.0.0.1:9;"); strings.HasPrefix(f.name, "10 servers") && n != 10 {
			t.Errorf("%s: %d servers", f.name, n)
		}
	}
}

func TestPinnedVersion(t *testing.T) {
	if v := pinned("../caddy/go.mod", "github.com/caddyserver/caddy/v2"); !regexp.MustCompile(`^2\.\d+\.\d+$`).MatchString(v) {
		t.Errorf("Caddy is pinned at %q", v)
	}
	if v := pinned("../caddy/go.mod", "example.com/none"); v != "" {
		t.Errorf("a module that is not there is pinned at %q", v)
	}
}
