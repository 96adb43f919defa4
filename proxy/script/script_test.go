package script

import (
	"fmt"
	"strings"
	"testing"
)

// asked is the tests' request.
type asked struct {
	State
	text map[string]string
	set  string
	runs int
}

func known() Known[*asked] {
	return Known[*asked]{
		Names: map[string]Definition[*asked]{
			"a":     {Get: func(r *asked) (string, bool) { v, ok := r.text["a"]; return v, ok }},
			"count": {Get: func(r *asked) (string, bool) { r.runs++; return fmt.Sprint(r.runs), true }, Once: true},
			"args":  {Get: func(r *asked) (string, bool) { return r.set, true }, Set: func(r *asked, s string) { r.set = s }},
			"files": {Refuse: "is about files"},
		},
		Families: map[string]func(string) (Func[*asked], bool){
			"arg_": func(rest string) (Func[*asked], bool) {
				return func(r *asked) (string, bool) { v, ok := r.text[rest]; return v, ok }, true
			},
			"arg_len_": func(rest string) (Func[*asked], bool) {
				return func(r *asked) (string, bool) { return fmt.Sprint(len(r.text[rest])), true }, rest != "none"
			},
		},
		Missing: func(name string) (string, bool) {
			return map[string]string{"later": "not built yet"}[name], name == "later"
		},
	}
}

func begin(c *Compiler[*asked], text map[string]string) *asked {
	r := &asked{text: text}
	r.Begin(c.Slots())
	return r
}

func mustTemplate(t *testing.T, c *Compiler[*asked], text string) *Template[*asked] {
	t.Helper()
	tpl, err := c.Template(t.Name(), text)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

func TestTemplate(t *testing.T) {
	values := map[string]string{"a": "A", "x": "X"}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "$a": "A", "${a}b": "Ab", "a${a}$a.$a-": "aAA.A-", "$A${ARG_X}": "AX", "$arg_x$arg_y": "X", "$arg_len_x": "1",
		"$1$2$9": "", "$10": "0", "{$a}": "{A}", "$count$count$args": "11", "é$a": "éA", "$arg_len_none": "",
	} {
		c := NewCompiler(known())
		tpl := mustTemplate(t, c, text)
		if u := c.Finish(); len(u) > 0 {
			t.Errorf("%q: %+v", text, u)
		}
		r := begin(c, values)
		if got := tpl.Value(r); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := string(tpl.Append([]byte("+"), begin(c, values))); got != "+"+want {
			t.Errorf("%q appended: %q", text, got)
		}
		if _, constant := tpl.Constant(); constant != !strings.Contains(text, "$") {
			t.Errorf("%q: constant %v", text, constant)
		}
	}
	for text, part := range map[string]string{"$": "without the name", "a$": "without", "$-": "without", "${": "} of ${", "${a": "} of ${a", "${}": "without", "${a-}": "} of ${a"} {
		if _, err := NewCompiler(known()).Template(nil, text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEachVariableIsEscapedAlone(t *testing.T) {
	c := NewCompiler(known())
	tpl := mustTemplate(t, c, "<$a|$arg_none|$1|text>")
	re, err := c.Regex("(.)", false)
	if err != nil {
		t.Fatal(err)
	}
	r := begin(c, map[string]string{"a": "q"})
	re.Match(r, "z")
	each := func(dst []byte, v string, there bool) []byte { return fmt.Appendf(dst, "[%s %v]", v, there) }
	if got := string(tpl.AppendEach(nil, r, each)); got != "<[q true]|[ false]|[z true]|text>" {
		t.Error(got)
	}
	if got := string(tpl.AppendWith(nil, r, func(b []byte, s string) []byte { return append(b, strings.ToUpper(s)...) })); got != "<q||Z|text>" {
		t.Error(got)
	}
}

func TestVariablesThatAreWritten(t *testing.T) {
	c := NewCompiler(known())
	before := mustTemplate(t, c, "[$new][$ARG_x][$args]")
	for name, want := range map[string]bool{"new": true, "NEW": true, "arg_x": true, "args": true, "a": false, "count": false, "": false, "1": false, "a-b": false} {
		w, err := c.Writable(name)
		if (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
		if err == nil {
			defer func() {
				r := begin(c, map[string]string{"x": "query"})
				if got := before.Value(r); got != "[][query][]" {
					t.Errorf("unwritten: %s", got)
				}
				w.Set(r, "v")
				if got := before.Value(r); strings.Count(got, "[v]") != 1 {
					t.Errorf("%s set: %s", name, got)
				}
			}()
		}
	}
	if u := c.Finish(); len(u) > 0 {
		t.Errorf("%+v", u)
	}
}

func TestUnknownVariables(t *testing.T) {
	c := NewCompiler(known())
	for _, text := range []string{"$cuont", "$files", "$later", "$something_else", "$defined"} {
		if _, err := c.Template(text, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Define("defined", true, func(*asked) (string, bool) { return "", false }); err != nil {
		t.Fatal(err)
	}
	want := []Unknown{
		{"$cuont", "no variable $cuont", "count", true, false}, {"$files", "$files is about files", "", false, false}, {"$later", "$later: not built yet", "", false, true},
		{"$something_else", "no variable $something_else", "", true, false},
	}
	got := c.Finish()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v", got)
	}
	if c.Define("a", true, nil) == nil || c.Define("x y", true, nil) == nil {
		t.Error("a built-in variable, or a bad name, was defined")
	}
}

func TestDistance(t *testing.T) {
	for words, want := range map[string]int{"a a": 0, "ab ba": 1, "host hots": 1, "abc a": 2, "a abc": 2, "kitten sitting": 3, "x ": 1} {
		a, b, _ := strings.Cut(words, " ")
		if got := distance(a, b); got != want {
			t.Errorf("%s: %d, want %d", words, got, want)
		}
	}
}

// TestNoAllocations: what stands in nearly every configuration costs nothing.
func TestNoAllocations(t *testing.T) {
	if racing {
		t.Skip("the race detector makes pools forget")
	}
	c := NewCompiler(known())
	one, text := mustTemplate(t, c, "$a"), mustTemplate(t, c, "text")
	re, err := c.Regex("^/a.*b$", true)
	if err != nil {
		t.Fatal(err)
	}
	r := begin(c, map[string]string{"a": "A"})
	if n := testing.AllocsPerRun(100, func() {
		r.Begin(c.Slots())
		_, _ = one.Value(r), text.Value(r)
		re.Match(r, "/Axb")
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
