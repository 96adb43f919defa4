package script

import (
	"strings"
	"testing"
)

func TestCapturesAreOfTheLastMatch(t *testing.T) {
	c := NewCompiler(known())
	regex := func(text string) *Regex[*asked] {
		re, err := c.Regex(text, false)
		if err != nil {
			t.Fatal(err)
		}
		return re
	}
	two, one, none := regex("(a)(b)?"), regex("(z)"), regex("q")
	name := regex("(?<n>[0-9]+)(?P<m>x)?")
	tpl := mustTemplate(t, c, "$1$2|$n|$m")
	r := begin(c, nil)
	for _, step := range []struct {
		re      *Regex[*asked]
		subject string
		match   bool
		want    string
	}{
		{two, "xab", true, "ab||"}, {one, "x", false, "ab||"}, {two, "a", true, "a||"}, {name, "12x", true, "12x|12|x"}, {one, "z", true, "z|12|x"},
		{none, "q", true, "|12|x"}, {name, "7", true, "7|7|"}, {name, "-", false, "7|7|"},
	} {
		if got := step.re.Match(r, step.subject); got != step.match || tpl.Value(r) != step.want {
			t.Fatalf("%q: %v, %s, want %v, %s", step.subject, got, tpl.Value(r), step.match, step.want)
		}
	}
	if r.Capture(9) != "" {
		t.Error("a group that is not there")
	}
}

func TestBytesAreMatched(t *testing.T) {
	for _, tc := range []struct {
		pattern, subject string
		fold, want       bool
		first            string
	}{
		{"^(..)$", "é", false, true, "é"}, {"^(.)$", "é", false, false, ""}, {"(é+)$", "caféé", false, false, "\xa9"}, {"x(.*)y", "éxéy", false, true, "é"},
		{`(\xc3.)z`, "\xc3\xa9z", false, true, "\xc3\xa9"}, {"(é)", "É", true, false, ""}, {"(k)", "\u212a", true, false, ""}, {"(.)$", "\xff", false, true, "\xff"},
	} {
		c := NewCompiler(known())
		re, err := c.Regex(tc.pattern, tc.fold)
		if err != nil {
			t.Fatal(err)
		}
		r := begin(c, nil)
		if tc.pattern == "(é+)$" {
			tc.want, tc.first = true, "é" // + is of the last byte only, as in nginx
		}
		if got := re.Match(r, tc.subject); got != tc.want || r.Capture(1) != tc.first {
			t.Errorf("%q in %q: %v %q", tc.pattern, tc.subject, got, r.Capture(1))
		}
	}
}

func TestRefusedPatterns(t *testing.T) {
	for pattern, part := range map[string]string{
		"(?=a)": "lookaround (?=", "(?!a)": "lookaround (?!", "(?<=a)": "lookaround (?<=", "(?<!a)": "lookaround (?<!", `(a)\2`: `backreference \2`, "(": "missing closing )",
		"a**": "invalid", "(?<count>x)": `group "count"`, "(?<a>x)": "built in", "[z-a]": "range", `a\`: "trailing backslash",
	} {
		_, err := NewCompiler(known()).Regex(pattern, false)
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
