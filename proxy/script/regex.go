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
	names []named[R]
}

type named[R Holder] struct {
	group int
	to    Variable[R]
}

// Regex compiles a pattern; fold: without regard to the case of ASCII letters. Its named groups become variables. The
// error says what of the pattern is not supported.
func (c *Compiler[R]) Regex(pattern string, fold bool) (*Regex[R], error) {
	text := widen(pattern)
	if fold {
		text = "(?i)" + text
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, explain(pattern, err)
	}
	x := &Regex[R]{re: re}
	for group, name := range re.SubexpNames() {
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
	if !isASCII(subject) {
		return x.matchBytes(r, subject)
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

// matchBytes matches each byte as one character, as nginx does: the subject is widened to one rune a byte.
func (x *Regex[R]) matchBytes(r R, subject string) bool {
	wide := widen(subject)
	at := x.re.FindStringSubmatchIndex(wide)
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
	s.subject, s.captures = subject, at
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
