package site

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// doubling is 24 maps, each twice the one before.
func doubling(seed, volatile string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "map $host $v0 { default %q; }\n", seed)
	for i := range 24 {
		fmt.Fprintf(&b, "map $host $v%d { %s default \"$v%d$v%d\"; }\n", i+1, volatile, i, i)
	}
	return b.String()
}

// TestValuesDoNotGrowWithoutEnd: a request that makes them is answered by 500, whatever a text that was cut off would
// have decided.
func TestValuesDoNotGrowWithoutEnd(t *testing.T) {
	var sets strings.Builder
	for range 24 {
		sets.WriteString("set $s x$s$s;\n")
	}
	for name, tc := range map[string]struct{ before, inside string }{
		"if":           {doubling("x", ""), `if ($v24 = "") { return 200 in; } return 200 out;`},
		"return":       {doubling("x", ""), "return 200 a$v24;"},
		"echo":         {doubling("x", ""), "echo in $v24;"},
		"set":          {"", sets.String() + "return 200 ok;"},
		"volatile":     {doubling("", "volatile;"), `if ($v24 = "") { return 200 in; } return 200 out;`},
		"sent":         {doubling("x", ""), "proxy_set_header X-A $v24; proxy_pass http://u;"},
		"try_files":    {doubling("x", ""), "try_files x /$v24;"},
		"error_page":   {doubling("x", ""), "error_page 500 /e; return 200 a$v24;"},
		"rewrite":      {doubling("x", ""), "rewrite ^ /x$v24 last;"},
		"rewrite away": {doubling("x", ""), "rewrite ^ http://a/$v24;"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before+"server { listen 127.0.0.1:8080; location / { "+tc.inside+" } location = /e { return 200 page; } location = /ok { return 200 fine; } }")
			began := time.Now()
			if got := w.ask("GET /"); !strings.HasPrefix(got, "500") {
				t.Errorf("%.60s", got)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			if got := w.ask("GET /ok"); got != "200 | fine" {
				t.Errorf("the next request: %.60s", got)
			}
		})
	}
}
