package script

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// nginx's expressions are PCRE's, where $ also holds before a line feed that ends the subject; here it holds at the very
// end alone, and a path that ends in %0a would get around `location ~ \.php$ { deny all; }`. Subjects that end in a line
// feed are therefore matched by an expression of their own, in which $ is the end of a line. So that it is that of the
// last line only, all other line feeds of such a subject are written as inner, which that expression takes for them.
const inner = '\ue000' // has no case, and is no byte: subjects have one rune a byte, at most U+00FF

// dollars gives the expression for subjects that end in a line feed; nil: that of all others does. Mixed tells that the
// pattern has ends of the text and of lines beside each other, which can't be told apart then.
func dollars(tree *syntax.Regexp) (_ *regexp.Regexp, mixed bool, _ error) {
	dollar, lines := ends(tree)
	if !dollar {
		return nil, false, nil
	}
	if lines {
		return nil, true, nil
	}
	re, err := regexp.Compile(lineEnds(tree).String())
	return re, false, err
}

// ends tells whether an expression has a $ of the text, and whether a ^ or $ of lines.
func ends(re *syntax.Regexp) (dollar, lines bool) {
	switch re.Op {
	case syntax.OpEndText:
		dollar = re.Flags&syntax.WasDollar != 0
	case syntax.OpBeginLine, syntax.OpEndLine:
		lines = true
	}
	for _, sub := range re.Sub {
		d, l := ends(sub)
		dollar, lines = dollar || d, lines || l
	}
	return dollar, lines
}

// lineEnds is a copy of an expression with $ as the end of a line, that takes inner for a line feed.
func lineEnds(re *syntax.Regexp) *syntax.Regexp {
	out := *re
	out.Sub = nil
	for _, sub := range re.Sub {
		out.Sub = append(out.Sub, lineEnds(sub))
	}
	switch {
	case re.Op == syntax.OpEndText && re.Flags&syntax.WasDollar != 0:
		out.Op = syntax.OpEndLine
	case re.Op == syntax.OpAnyCharNotNL:
		out.Op, out.Rune = syntax.OpCharClass, []rune{0, '\n' - 1, '\n' + 1, inner - 1, inner + 1, unicode.MaxRune}
	case re.Op == syntax.OpCharClass:
		out.Rune = withInner(re.Rune)
	case re.Op == syntax.OpLiteral && slices.Contains(re.Rune, '\n'):
		out.Op, out.Rune = syntax.OpConcat, nil
		for _, c := range re.Rune {
			if c == '\n' {
				out.Sub = append(out.Sub, &syntax.Regexp{Op: syntax.OpCharClass, Rune: []rune{'\n', '\n', inner, inner}})
			} else {
				out.Sub = append(out.Sub, &syntax.Regexp{Op: syntax.OpLiteral, Flags: re.Flags, Rune: []rune{c}})
			}
		}
	}
	return &out
}

// withInner is a class, as pairs of first and last in order, that has inner if and only if it has a line feed.
func withInner(class []rune) []rune {
	var out []rune
	feed, put := has(class, '\n'), false
	if feed == has(class, inner) {
		return class
	}
	for i := 0; i+1 < len(class); i += 2 {
		from, to := class[i], class[i+1]
		switch {
		case feed && !put && from > inner:
			out, put = append(out, inner, inner), true
		case !feed && from <= inner && inner <= to:
			if from < inner {
				out = append(out, from, inner-1)
			}
			if from = inner + 1; from > to {
				continue
			}
		}
		out = append(out, from, to)
	}
	if feed && !put {
		out = append(out, inner, inner)
	}
	return joined(out)
}

func has(class []rune, c rune) bool {
	for i := 0; i+1 < len(class); i += 2 {
		if class[i] <= c && c <= class[i+1] {
			return true
		}
	}
	return false
}

// joined makes one range of those that meet, as String wants them.
func joined(class []rune) []rune {
	var out []rune
	for i := 0; i+1 < len(class); i += 2 {
		if n := len(out); n > 0 && out[n-1]+1 == class[i] {
			out[n-1] = class[i+1]
		} else {
			out = append(out, class[i], class[i+1])
		}
	}
	return out
}

// feeds writes the line feeds of a widened subject, but for the last byte, as inner.
func feeds(wide string) string {
	last := len(wide) - 1
	return strings.ReplaceAll(wide[:last], "\n", string(inner)) + wide[last:]
}

// instructions is about how many a compiled expression has, or far more than allowed.
func instructions(re *syntax.Regexp) int {
	const enough = 1 << 32
	size := 1
	for _, sub := range re.Sub {
		size = min(size+instructions(sub)+1, enough)
	}
	switch re.Op {
	case syntax.OpLiteral:
		size += len(re.Rune)
	case syntax.OpCharClass:
		size += len(re.Rune) / 8 // ranges are cheaper
	case syntax.OpRepeat:
		size = min(size*max(re.Min, re.Max, 1), enough)
	case syntax.OpCapture:
		size++
	}
	return size
}
