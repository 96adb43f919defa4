package compare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/deploy/rig"
)

// leastConfigurations is how many there must be: a glob that finds nothing would compare nothing.
const leastConfigurations = 40

// TestConfigurations serves each of testdata/*.conf by nginx and by us and compares what came of each request.
func TestConfigurations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.conf")
	if err != nil || len(files) < leastConfigurations {
		t.Fatalf("%d configurations, %v", len(files), err)
	}
	requests := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".conf")
		t.Run(name, func(t *testing.T) { requests += compareConfiguration(t, file) })
	}
	t.Logf("%d configurations, %d requests each by both", len(files), requests)
}

func compareConfiguration(t *testing.T, file string) int {
	addrs := []string{"@listen@", address(t), "@b1@", address(t), "@b2@", address(t), "@b3@", address(t), "@second@", address(t)}
	expand := strings.NewReplacer(addrs...).Replace
	listen := addrs[1]
	conf, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	requests := readRequests(t, strings.TrimSuffix(file, ".conf")+".req", expand)
	if len(requests) == 0 {
		t.Fatal("no requests")
	}
	r := &recorder{}
	for i, name := range []string{"b1", "b2", "b3"} {
		r.backend(t, name, addrs[3+2*i])
	}
	var runs [2][]seen
	for i, s := range sides {
		stop := s.start(t, expand(string(conf)), listen)
		for _, q := range requests {
			r.next(q.reply)
			a := q.send(t, target(q, listen, addrs[9]))
			runs[i] = append(runs[i], seen{a, r.next(reply{})})
		}
		stop()
	}
	for i, q := range requests {
		for _, d := range differences(runs[0][i], runs[1][i]) {
			t.Errorf("%s:%d: %s", strings.TrimSuffix(file, ".conf")+".req", q.line, d)
		}
	}
	return len(requests)
}

// target is the address that a request goes to: the second one when its field X-Second says so.
func target(q request, first, second string) string {
	if strings.Contains(q.text, "X-Second: yes\r\n") {
		return second
	}
	return first
}

func address(t *testing.T) string {
	t.Helper()
	a, err := rig.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return a
}
