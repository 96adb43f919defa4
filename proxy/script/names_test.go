package script

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	var n Names[string]
	for _, name := range []string{"exact.example", "*.head.example", "*.longer.head.example", ".both.example", "www.tail.*", "www.tail.longer.*", "", "_", "Case.Example", "a.exact.head.example"} {
		if err := n.Add(name, name); err != nil {
			t.Fatal(err)
		}
	}
	for host, want := range map[string]string{
		"exact.example": "exact.example", "xexact.example": "-", "a.head.example": "*.head.example", "head.example": "-", ".head.example": "-", "a.b.head.example": "*.head.example",
		"a.longer.head.example": "*.longer.head.example", "longer.head.example": "*.head.example", "both.example": ".both.example", "x.both.example": ".both.example", "xboth.example": "-",
		"www.tail.org": "www.tail.*", "www.tail.": "-", "www.tail": "-", "www.tail.longer.x": "www.tail.longer.*", "www.tail.longer": "www.tail.*", "": "", "_": "_", "case.example": "Case.Example",
		"a.exact.head.example": "a.exact.head.example", "other": "-", ".": "-", "..": "-",
	} {
		got, ok := n.Find(host)
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
	for _, name := range []string{"exact.example", "EXACT.example", "*.head.example", ".head.example", "both.example", "www.tail.*", "a.*.b", "*", "*.", ".", "a..b", "*.a.*", "a*", "w*.b"} {
		if err := n.Add(name, name); err == nil {
			t.Errorf("%q was taken", name)
		} else if !strings.Contains(err.Error(), strings.ToLower(name)) {
			t.Error(err)
		}
	}
}

func TestMapping(t *testing.T) {
	c := NewCompiler(known())
	key := mustTemplate(t, c, "$a")
	m := NewMapping(key, false)
	add := func(k, to string) {
		if err := m.Exact(k, mustTemplate(t, c, to)); err != nil {
			t.Fatal(err)
		}
	}
	add("one", "1")
	add("*.x", "star")
	re, err := c.Regex("^r(.)", false)
	if err != nil {
		t.Fatal(err)
	}
	m.Pattern(re, mustTemplate(t, c, "re$1"))
	if m.Exact("ONE", key) == nil {
		t.Error("a key stands twice")
	}
	for in, want := range map[string]string{"one": "1", "ONE": "1", "rq": "req", "a.x": "", "*.x": "star", "": ""} {
		if got, ok := m.Value(begin(c, map[string]string{"a": in})); got != want || !ok {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if m.Default(key) != nil || m.Default(key) == nil {
		t.Error("one default, not two")
	}
	if got, _ := m.Value(begin(c, map[string]string{"a": "other"})); got != "other" {
		t.Error(got)
	}
}
