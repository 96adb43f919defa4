package proxy

import "bytes"

// normalise gives the path that routes are matched with: without query, percent-decoded, slashes merged, dots resolved.
// Matching anything else would let a client reach behind a route by spelling it differently. It reports false for what
// can't be such a path: bad escapes, a NUL, dots that lead above the root, or no leading slash. The result may share
// target's memory.
func normalise(target []byte) ([]byte, bool) {
	if len(target) == 0 || target[0] != '/' {
		return nil, false
	}
	plain := true
	end := len(target)
scan:
	for i, c := range target {
		switch c {
		case '?', '#':
			end = i
			break scan
		case '%', 0:
			plain = false
		case '/':
			if i+1 < len(target) && (target[i+1] == '/' || target[i+1] == '.') {
				plain = false
			}
		}
	}
	if plain {
		return target[:end], true
	}
	decoded, ok := decode(target[:end])
	if !ok {
		return nil, false
	}
	return resolve(decoded)
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

// resolve merges slashes and takes dots out. A path that ended in a slash or in dots ends in a slash.
func resolve(p []byte) ([]byte, bool) {
	out := make([]byte, 0, len(p))
	for len(p) > 0 {
		p = p[1:] // the slash
		next := bytes.IndexByte(p, '/')
		if next < 0 {
			next = len(p)
		}
		segment, last := p[:next], next == len(p)
		p = p[next:]
		switch string(segment) {
		case "", ".":
		case "..":
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
