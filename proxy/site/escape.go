package site

// inArgs are the bytes that nginx escapes in arguments.
var inArgs = func() (set [256]bool) {
	for c := range set {
		set[c] = c <= ' ' || c >= 0x7f
	}
	for _, c := range []byte("#%&+;?\"<>\\^`{|}") {
		set[c] = true
	}
	return set
}()

func appendEscapedArgs(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; inArgs[c] {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// escapePath is a decoded path as it stands in a Location.
func escapePath(s string) string { return string(appendEscaped(make([]byte, 0, len(s)+16), s)) }

// unescapeRedirect decodes the escapes of a redirect's path that stand for printable characters above %: what a capture
// brought along is then written as it was. It works in place.
func unescapeRedirect(b []byte) []byte {
	out := b[:0]
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '?' {
			return append(out, b[i:]...)
		}
		if c != '%' {
			out = append(out, c)
			continue
		}
		if i+2 >= len(b) {
			return out // nginx drops an escape that is cut off
		}
		hi, ok1 := unhex(b[i+1])
		lo, ok2 := unhex(b[i+2])
		switch v := hi<<4 | lo; {
		case !ok1 || !ok2:
		case v == '?':
			return append(append(out, v), b[i+3:]...)
		case v > '%' && v < 0x7f:
			out = append(out, v)
		default:
			out = append(out, '%', b[i+1], b[i+2])
		}
		i += 2
	}
	return out
}
