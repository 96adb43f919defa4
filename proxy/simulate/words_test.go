package simulate

import (
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want []string
		bad  bool
	}{
		"empty":                {"", nil, false},
		"blanks only":          {" \t\r", nil, false},
		"comment only":         {"  # nothing", nil, false},
		"plain":                {"wait  10s", []string{"wait", "10s"}, false},
		"comment at the end":   {"wait 10s # then", []string{"wait", "10s"}, false},
		"number sign inside":   {"request GET /a#b", []string{"request", "GET", "/a#b"}, false},
		"quotes hold together": {`header="X-A: 1 2" x`, []string{"header=X-A: 1 2", "x"}, false},
		"empty word":           {`body="" x`, []string{"body=", "x"}, false},
		"lone empty word":      {`"" x`, []string{"", "x"}, false},
		"escapes":              {`"a\"b\\c\d"`, []string{`a"b\c\d`}, false},
		"number sign quoted":   {`"# no comment"`, []string{"# no comment"}, false},
		"quote left open":      {`a "b c`, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := words(c.line)
			if (err != nil) != c.bad || !slices.Equal(got, c.want) {
				t.Errorf("words(%q) = %q, %v; want %q", c.line, got, err, c.want)
			}
		})
	}
}
