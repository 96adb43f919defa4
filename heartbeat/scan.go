package heartbeat

import (
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON in place. It exists because encoding/json accepts what a strict wire format must not (a field
// given twice, fields in the wrong case) and costs several times as much per beat. The text is known to be UTF-8.
type scanner struct {
	buf []byte
	pos int
}

// maxDepth bounds nesting: a beat has three levels, what is skipped may have more.
const maxDepth = 32

var (
	errSyntax    = errors.New("syntax error")
	errSurrogate = errors.New("half a surrogate pair in an escape")
)

func (s *scanner) space() {
	for s.pos < len(s.buf) {
		switch s.buf[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// peek is the next byte that is not space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos == len(s.buf) {
		return 0
	}
	return s.buf[s.pos]
}

// take consumes c, if it comes next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.pos == len(s.buf) {
		return false
	}
	s.pos++
	return true
}

// str reads a string. The result is a part of the text when it holds no escapes.
func (s *scanner) str() ([]byte, error) {
	if !s.take('"') {
		return nil, errSyntax
	}
	start := s.pos
	for s.pos < len(s.buf) {
		switch c := s.buf[s.pos]; {
		case c == '"':
			s.pos++
			return s.buf[start : s.pos-1], nil
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			return nil, errSyntax
		}
		s.pos++
	}
	return nil, errSyntax
}

// escaped goes on with a string that began at start and whose first escape is here.
func (s *scanner) escaped(start int) ([]byte, error) {
	out := append(make([]byte, 0, s.pos-start+32), s.buf[start:s.pos]...)
	for s.pos < len(s.buf) {
		c := s.buf[s.pos]
		s.pos++
		switch {
		case c == '"':
			return out, nil
		case c < ' ':
			return nil, errSyntax
		case c != '\\':
			out = append(out, c)
			continue
		}
		var err error
		if out, err = s.escape(out); err != nil {
			return nil, err
		}
	}
	return nil, errSyntax
}

// escape reads what follows a backslash.
func (s *scanner) escape(out []byte) ([]byte, error) {
	if s.pos == len(s.buf) {
		return nil, errSyntax
	}
	c := s.buf[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/':
		return append(out, c), nil
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
		r, err := s.unicode()
		if err != nil {
			return nil, err
		}
		return utf8.AppendRune(out, r), nil
	}
	return nil, errSyntax
}

// unicode reads the digits of a \u escape, and the second escape of a surrogate pair.
func (s *scanner) unicode() (rune, error) {
	r, ok := s.hex4()
	if !ok {
		return 0, errSyntax
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if s.pos+1 >= len(s.buf) || s.buf[s.pos] != '\\' || s.buf[s.pos+1] != 'u' {
		return 0, errSurrogate
	}
	s.pos += 2
	second, ok := s.hex4()
	if !ok {
		return 0, errSyntax
	}
	if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
		return 0, errSurrogate
	}
	return r, nil
}

func (s *scanner) hex4() (rune, bool) {
	if len(s.buf)-s.pos < 4 {
		return 0, false
	}
	var r rune
	for _, c := range s.buf[s.pos : s.pos+4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	s.pos += 4
	return r, true
}

// number reads a number and returns its text.
func (s *scanner) number() ([]byte, error) {
	s.space()
	start := s.pos
	s.accept("-")
	switch {
	case s.accept("0"):
	case s.digits() > 0:
	default:
		return nil, errSyntax
	}
	if s.accept(".") && s.digits() == 0 {
		return nil, errSyntax
	}
	if s.accept("eE") {
		s.accept("+-")
		if s.digits() == 0 {
			return nil, errSyntax
		}
	}
	return s.buf[start:s.pos], nil
}

func (s *scanner) accept(any string) bool {
	if s.pos == len(s.buf) {
		return false
	}
	for i := range len(any) {
		if s.buf[s.pos] == any[i] {
			s.pos++
			return true
		}
	}
	return false
}

func (s *scanner) digits() (n int) {
	for s.pos < len(s.buf) && '0' <= s.buf[s.pos] && s.buf[s.pos] <= '9' {
		s.pos++
		n++
	}
	return n
}

// skip passes over one value of any kind and returns its text.
func (s *scanner) skip(depth int) ([]byte, error) {
	first := s.peek()
	start := s.pos
	var err error
	switch first {
	case '"':
		_, err = s.str()
	case '{', '[':
		err = s.skipInto(first, depth+1)
	case 't':
		err = s.word("true")
	case 'f':
		err = s.word("false")
	case 'n':
		err = s.word("null")
	default:
		_, err = s.number()
	}
	return s.buf[start:s.pos], err
}

func (s *scanner) skipInto(open byte, depth int) error {
	if depth > maxDepth {
		return errSyntax
	}
	end := open + 2 // in ASCII } is { + 2 and ] is [ + 2
	s.pos++
	if s.take(end) {
		return nil
	}
	for {
		if open == '{' {
			if _, err := s.str(); err != nil {
				return err
			}
			if !s.take(':') {
				return errSyntax
			}
		}
		if _, err := s.skip(depth); err != nil {
			return err
		}
		if s.take(end) {
			return nil
		}
		if !s.take(',') {
			return errSyntax
		}
	}
}

func (s *scanner) word(w string) error {
	if len(s.buf)-s.pos < len(w) || string(s.buf[s.pos:s.pos+len(w)]) != w {
		return errSyntax
	}
	s.pos += len(w)
	return nil
}

// object reads an object and calls member at the value of each; member consumes it.
func (s *scanner) object(member func(key []byte) error) error {
	if !s.take('{') {
		return errSyntax
	}
	if s.take('}') {
		return nil
	}
	for {
		key, err := s.str()
		if err != nil {
			return err
		}
		if !s.take(':') {
			return errSyntax
		}
		if err := member(key); err != nil {
			return err
		}
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return errSyntax
		}
	}
}

// array reads an array and calls element at each value.
func (s *scanner) array(element func() error) error {
	if !s.take('[') {
		return errSyntax
	}
	if s.take(']') {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return errSyntax
		}
	}
}
