package script

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

// TestDollarsAtRandom: where a subject ends in a line feed, an expression with $ as its last character matches what it
// does with an optional line feed in its place; where it does not, nothing changes.
func TestDollarsAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", ".", "[^a]", "[^\\n]", "\\n", "(a|\\n)", "\\s*", "b+?", "(?s:.)", "[\\x00-\\xff]", "(?:a\\n)?", "\\D", "é", "(.*)", "(?i:K)", "\\W"}
	text := []string{"a", "b", "\n", "é", "k", "K", " "}
	pick := func(from []string, most int) string {
		var b strings.Builder
		for range random.IntN(most) {
			b.WriteString(from[random.IntN(len(from))])
		}
		return b.String()
	}
	matched, rounds := 0, 700
	if racing {
		rounds = 100
	}
	for range rounds {
		pattern, subject := pick(pieces, 5), pick(text, 7)
		if random.IntN(2) == 0 {
			pattern = "^" + pattern
		}
		c := NewCompiler(known())
		re, err := c.Regex(pattern+"$", false)
		if err != nil {
			t.Fatal(err)
		}
		got := re.Match(begin(c, nil), subject)
		want := regexp.MustCompile(widen(pattern) + `(?:\n?\z)`).MatchString(widen(subject))
		if got != want {
			t.Fatalf("%q in %q: %v", pattern+"$", subject, got)
		}
		if got {
			matched++
		}
	}
	if matched < rounds/14 {
		t.Errorf("only %d matched", matched)
	}
}

func TestExpressionsHaveABound(t *testing.T) {
	c := NewCompiler(known())
	for i := range 2000 {
		if _, err := c.Regex("^(?:[a-z]{1,900}[0-9])$", false); err != nil {
			if !strings.Contains(err.Error(), "more than 1048576 instructions") || i < 100 {
				t.Errorf("the %d-th: %v", i, err)
			}
			break
		}
		if i == 1999 {
			t.Error("none was refused")
		}
	}
	if _, err := c.Regex("a", false); err != nil {
		t.Errorf("a small one: %v", err)
	}
	if _, err := NewCompiler(known()).Regex("(?m:^a)b$", false); err == nil || !strings.Contains(err.Error(), "(?m)") {
		t.Errorf("mixed: %v", err)
	}
	for _, pattern := range []string{"a", "(a|b)*c", "^[a-z]{3,500}x$", "(?:abc|abd){40}", "((((a?)+)?)+)?", "\\w+@(?i:example)\\.com"} {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		guess := instructions(tree)
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(program.Inst); guess < n/2 || guess > 4*n+8 {
			t.Errorf("%s: %d instructions, guessed %d", pattern, n, guess)
		}
	}
}
