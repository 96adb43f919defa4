package script

import (
	"fmt"
	"strings"
	"unsafe"
)

// Template is a text with variables.
type Template[R Holder] struct {
	text  string
	parts []part[R] // empty: constant
	size  int       // of the literal parts
}

// part is a piece of a template: a literal, a variable, or a capture.
type part[R Holder] struct {
	literal string
	v       *variable[R]
	capture int
}

// Template compiles a text. $name and ${name} stand for a variable, $1 to $9 for a capture; there is no way to write a
// dollar sign, as in nginx. At is handed back by Finish for variables that don't exist.
func (c *Compiler[R]) Template(at any, text string) (*Template[R], error) {
	t := &Template[R]{text: text}
	rest := text
	for rest != "" {
		dollar := strings.IndexByte(rest, '$')
		if dollar < 0 {
			dollar = len(rest)
		}
		if dollar > 0 {
			t.parts = append(t.parts, part[R]{literal: rest[:dollar]})
			t.size += dollar
		}
		if rest = rest[dollar:]; rest == "" {
			break
		}
		name, after, err := cutName(rest)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		if len(name) == 1 && name[0] >= '1' && name[0] <= '9' && rest[1] != '{' {
			t.parts = append(t.parts, part[R]{capture: int(name[0] - '0')})
		} else {
			t.parts = append(t.parts, part[R]{v: c.read(at, name)})
		}
		rest = after
	}
	if len(t.parts) == 1 && t.parts[0].literal != "" {
		t.parts = nil
	}
	return t, nil
}

// cutName takes a variable's name, behind the dollar sign that s begins with.
func cutName(s string) (name, after string, err error) {
	s = s[1:]
	if s == "" {
		return "", "", fmt.Errorf("a $ without the name of a variable")
	}
	if s[0] >= '1' && s[0] <= '9' {
		return s[:1], s[1:], nil
	}
	braces := s[0] == '{'
	if braces {
		s = s[1:]
	}
	end := 0
	for end < len(s) && isNameByte(s[end]) {
		end++
	}
	name, after = s[:end], s[end:]
	switch {
	case braces && !strings.HasPrefix(after, "}"):
		return "", "", fmt.Errorf("the } of ${%s is missing", name)
	case name == "":
		return "", "", fmt.Errorf("a $ without the name of a variable")
	case braces:
		after = after[1:]
	}
	return name, after, nil
}

// Text is the template as it was written.
func (t *Template[R]) Text() string { return t.text }

// Constant gives the text of a template without variables.
func (t *Template[R]) Constant() (string, bool) {
	if len(t.parts) > 0 {
		return "", false
	}
	return t.text, true
}

// Value is the text for a request, valid as long as that is. A single variable or capture is given without a copy.
func (t *Template[R]) Value(r R) string {
	switch len(t.parts) {
	case 0:
		return t.text
	case 1:
		return t.parts[0].value(r)
	}
	s := r.Script()
	b := t.Append(s.Borrow(), r)
	text := s.Keep(b)
	s.GiveBack(b)
	return text
}

// Append appends the text for a request to dst; nothing when it is too large, which State.Excess tells then.
func (t *Template[R]) Append(dst []byte, r R) []byte {
	if len(t.parts) == 0 {
		return append(dst, t.text...)
	}
	begin := len(dst)
	for i := range t.parts {
		text := ""
		if p := &t.parts[i]; p.v != nil && p.v.appends() {
			dst, _ = p.v.append(dst, r)
		} else {
			text = p.value(r)
		}
		if len(dst)-begin+len(text) > maxValue+t.size {
			r.Script().overflow()
			return dst[:begin]
		}
		dst = append(dst, text...)
	}
	return dst
}

// AppendWith is Append, with captures passed through escape.
func (t *Template[R]) AppendWith(dst []byte, r R, escape func(dst []byte, s string) []byte) []byte {
	if len(t.parts) == 0 {
		return append(dst, t.text...)
	}
	begin := len(dst)
	for i := range t.parts {
		if text := t.parts[i].value(r); t.parts[i].capture > 0 {
			dst = escape(dst, text)
		} else {
			dst = append(dst, text...)
		}
		if len(dst)-begin > maxValue+t.size {
			r.Script().overflow()
			return dst[:begin]
		}
	}
	return dst
}

// AppendEach is Append with every variable and capture written by each, which also learns whether there is a value: for
// texts in which those are escaped, such as a log's.
func (t *Template[R]) AppendEach(dst []byte, r R, each func(dst []byte, value string, there bool) []byte) []byte {
	if len(t.parts) == 0 {
		return append(dst, t.text...)
	}
	for i := range t.parts {
		switch p := &t.parts[i]; {
		case p.v != nil && p.v.appends():
			dst = p.v.appendEach(dst, r, each)
		case p.v != nil:
			text, there := p.v.value(r)
			dst = each(dst, text, there)
		case p.capture > 0:
			text := r.Script().Capture(p.capture)
			dst = each(dst, text, text != "")
		default:
			dst = append(dst, p.literal...)
		}
	}
	return dst
}

// appendEach is for a variable that appends.
func (v *variable[R]) appendEach(dst []byte, r R, each func(dst []byte, value string, there bool) []byte) []byte {
	if v.clean {
		out, there := v.append(dst, r)
		if !there {
			return each(dst, "", false)
		}
		return out
	}
	s := r.Script()
	b, there := v.append(s.Borrow(), r)
	dst = each(dst, unsafe.String(unsafe.SliceData(b), len(b)), there)
	s.GiveBack(b)
	return dst
}

func (p *part[R]) value(r R) string {
	switch {
	case p.v != nil:
		text, _ := p.v.value(r)
		return text
	case p.capture > 0:
		return r.Script().Capture(p.capture)
	}
	return p.literal
}

// Cut splits a text at the first c that is no part of a variable's name; ok is false without one.
func Cut(text string, c byte) (before, after string, ok bool) {
	return strings.Cut(text, string(c)) // names hold letters, digits and _ only
}
