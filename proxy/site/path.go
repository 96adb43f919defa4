package site

import (
	"bytes"
	"unsafe"
)

// path is what a request's target says.
type path struct {
	uri    string // decoded, dots resolved
	args   string // behind the first ?
	quoted bool   // uri had escapes
	plus   bool   // uri has a + as it came
}

// parseTarget reads a target in origin form as nginx does: the path ends at ? or #, percent escapes are decoded, dots
// resolved, and runs of slashes become one when merge is set. It reports false for what can't be such a path: bad
// escapes, a NUL, dots that lead above the root, or no leading slash. The result may share target's memory.
func parseTarget(target []byte, merge bool) (path, bool) {
	var p path
	if len(target) == 0 || target[0] != '/' {
		return p, false
	}
	end, plain := len(target), true
scan:
	for i, c := range target {
		if !telling[c] {
			continue
		}
		switch c {
		case '?':
			end = i
			p.args = textOf(cutFragment(target[i+1:]))
			break scan
		case '#':
			end = i
			break scan
		case '%':
			p.quoted, plain = true, false
		case 0:
			return p, false
		case '+':
			p.plus = true
		case '/':
			if i+1 < len(target) && (target[i+1] == '/' || target[i+1] == '.') {
				plain = false
			}
		}
	}
	if plain {
		p.uri = textOf(target[:end])
		return p, true
	}
	decoded, ok := decode(target[:end])
	if !ok {
		return p, false
	}
	resolved, ok := resolve(decoded, merge)
	p.uri = textOf(resolved)
	return p, ok
}

// telling are the bytes of a target that say more than that they are there.
var telling = [256]bool{'?': true, '#': true, '%': true, 0: true, '+': true, '/': true}

// Normalise gives the path of a target that locations and routes are matched with, and reports false for a target that
// has none. The result may share target's memory.
func Normalise(target []byte, mergeSlashes bool) (string, bool) {
	p, ok := parseTarget(target, mergeSlashes)
	return p.uri, ok
}

func cutFragment(args []byte) []byte {
	if i := bytes.IndexByte(args, '#'); i >= 0 {
		return args[:i]
	}
	return args
}

func decode(p []byte) ([]byte, bool) {
	out := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c == '%' {
			if i+2 >= len(p) {
				return nil, false
			}
			hi, ok1 := unhex(p[i+1])
			lo, ok2 := unhex(p[i+2])
			if !ok1 || !ok2 {
				return nil, false
			}
			c = hi<<4 | lo
			i += 2
		}
		if c == 0 {
			return nil, false
		}
		out = append(out, c)
	}
	return out, true
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// resolve takes dots out, and with merge empty segments. A path that ended in a slash or in dots ends in a slash.
func resolve(p []byte, merge bool) ([]byte, bool) {
	out := make([]byte, 0, len(p))
	for len(p) > 0 {
		p = p[1:] // the slash
		next := bytes.IndexByte(p, '/')
		if next < 0 {
			next = len(p)
		}
		segment, last := p[:next], next == len(p)
		p = p[next:]
		switch {
		case len(segment) == 0 && !merge && !last:
			out = append(out, '/')
			continue
		case len(segment) == 0, string(segment) == ".":
		case string(segment) == "..":
			if len(out) == 0 {
				return nil, false
			}
			out = out[:bytes.LastIndexByte(out, '/')]
		default:
			out = append(append(out, '/'), segment...)
			continue
		}
		if last {
			out = append(out, '/')
		}
	}
	if len(out) == 0 {
		out = append(out, '/')
	}
	return out, true
}

// textOf is b as a string without a copy. The bytes of a request's head stay as they are while the request is served,
// and nothing keeps text of it longer.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf is s as bytes that must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
