package topology

import (
	"strings"
	"testing"
	"time"
)

func TestQueueLine(t *testing.T) {
	for line, want := range map[string]any{
		"queue 100":               Queue{100, time.Minute},
		"queue 1 timeout=500ms":   Queue{1, 500 * time.Millisecond},
		"queue 0":                 "invalid number",
		"queue many":              "invalid number",
		"queue":                   "want it once",
		"queue 1 timeout=0":       "invalid timeout",
		"queue 1 timeout=soon":    "invalid timeout",
		"queue 1 wait=5s":         `invalid parameter "wait=5s"`,
		"queue 1 timeout=5s more": "want it once",
		"queue 1|queue 2":         "want it once",
	} {
		u := Upstream{Name: "u", Origin: Declared, Directives: []Directive{{"server", "10.0.0.1:80", "max_conns=1"}}}
		for one := range strings.SplitSeq(line, "|") {
			u.Directives = append(u.Directives, strings.Fields(one))
		}
		x, problems := Expand(&Config{Upstreams: []Upstream{u}}, ExpandOptions{})
		switch want := want.(type) {
		case Queue:
			if len(problems) > 0 || x.Upstreams[0].Queue != want {
				t.Errorf("%s: %+v, %v", line, x.Upstreams[0].Queue, problems)
			}
		case string:
			if len(problems) != 1 || !strings.Contains(problems[0].Error(), want) {
				t.Errorf("%s: %v, want %q", line, problems, want)
			}
		}
	}
}
