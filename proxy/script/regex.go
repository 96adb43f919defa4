package script

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Regex is a regular expression whose matches leave captures in a State.
type Regex[R Holder] struct {
	re    *regexp.Regexp
	fed   *regexp.Regexp // for subjects that end in a line feed; nil: re
	names []named[R]
}

// maxInstructions bounds the expressions of one configuration, compiled: some 40 bytes each.
const maxInstructions = 1 << 20

type named[R Holder] struct {
	group int
	to    Variable[R]
}

// Regex compiles a pattern; fold: without regard to the case of ASCII letters. Its named groups become variables. The
// error says what of the pattern is not supported, or that all patterns together are too much.
func (c *Compiler[R]) Regex(pattern string, fold bool) (*Regex[R], error) {
	text := widen(pattern)
	if fold {
		text = "(?i)" + text
	}
	x := &Regex[R]{}
	if err := c.expressions(x, pattern, text); err != nil {
		return nil, err
	}
	for group, name := range x.re.SubexpNames() {
		if name == "" {
			continue
		}
		to, err := c.Writable(name)
		if err != nil {
			return nil, fmt.Errorf("group %q of %q: %w", name, pattern, err)
		}
		x.names = append(x.names, named[R]{group, to})
	}
	return x, nil
}

// expressions compiles those of a pattern, whose text is in Go's syntax.
func (c *Compiler[R]) expressions(x *Regex[R], pattern, text string) error {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return explain(pattern, err)
	}
	size := instructions(tree)
	if dollar, _ := ends(tree); dollar {
		size *= 2
	}
	if size > maxInstructions-c.instructions {
		return fmt.Errorf("the regular expressions up to this one are too large: more than %d instructions", maxInstructions)
	}
	c.instructions += size
	if x.re, err = regexp.Compile(text); err != nil {
		return explain(pattern, err)
	}
	var mixed bool
	if x.fed, mixed, err = dollars(tree); err != nil {
		return explain(pattern, err)
	}
	if mixed {
		return fmt.Errorf("regular expression %q: (?m) for a part of it, beside a $ that is not in it, is not supported", pattern)
	}
	return nil
}

// explain says in words of this syntax what Go's parser refused.
func explain(pattern string, err error) error {
	var se *syntax.Error
	if !errors.As(err, &se) {
		return fmt.Errorf("regular expression %q: %w", pattern, err)
	}
	for _, look := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if strings.Contains(pattern, look) {
			return fmt.Errorf("regular expression %q: lookaround %s…) is not supported (RE2)", pattern, look)
		}
	}
	if se.Code == syntax.ErrInvalidEscape && len(se.Expr) == 2 && se.Expr[1] >= '1' && se.Expr[1] <= '9' {
		return fmt.Errorf("regular expression %q: the backreference %s is not supported (RE2)", pattern, se.Expr)
	}
	return fmt.Errorf("regular expression %q: %s: %q", pattern, se.Code, se.Expr)
}

// Match tells whether the pattern is found in subject. A match replaces the captures of the one before, by none when the
// pattern has no groups; without one they stay.
func (x *Regex[R]) Match(r R, subject string) bool {
	if x.fed != nil && strings.HasSuffix(subject, "\n") {
		return x.matchWide(r, x.fed, subject, feeds(widen(subject)))
	}
	if !isASCII(subject) {
		return x.matchWide(r, x.re, subject, widen(subject))
	}
	if x.re.NumSubexp() == 0 {
		if !x.re.MatchString(subject) {
			return false
		}
		r.Script().ForgetCaptures()
		return true
	}
	at := x.re.FindStringSubmatchIndex(subject)
	if at == nil {
		return false
	}
	x.leave(r, subject, at)
	return true
}

// matchWide matches each byte as one character, as nginx does: wide is the subject with one rune a byte.
func (x *Regex[R]) matchWide(r R, re *regexp.Regexp, subject, wide string) bool {
	at := re.FindStringSubmatchIndex(wide)
	if at == nil {
		return false
	}
	for i, n := range at {
		if n > 0 {
			at[i] = utf8.RuneCountInString(wide[:n])
		}
	}
	x.leave(r, subject, at)
	return true
}

func (x *Regex[R]) leave(r R, subject string, at []int) {
	s := r.Script()
	s.used, s.subject, s.captures = true, subject, at
	for _, n := range x.names {
		n.to.Set(r, s.Capture(n.group))
	}
}

// widen makes of each byte the rune of that number.
func widen(s string) string {
	if isASCII(s) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
