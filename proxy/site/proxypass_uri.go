package site

// pathOf is what a proxied request asks for, when proxy_pass is a constant text.
type pathOf struct {
	raw      string // the client's target as it came; empty once the URI was changed
	uri      string // decoded and normalised, or as the configuration changed it
	args     string
	escape   bool   // the URI is not the client's own text: it was decoded, rewritten, or comes from the configuration
	part     string // URI part of proxy_pass, empty without one
	location int    // length of the location's name that part stands for; -1: the URI was rewritten, nothing is replaced
}

// append appends the target to dst. With a URI part this is put in place of the location's name; without one the client's
// own target goes on untouched as long as nobody changed it.
func (p *pathOf) append(dst []byte) []byte {
	if p.part == "" && p.raw != "" {
		return append(dst, p.raw...)
	}
	rest := p.uri
	if p.part != "" && p.location >= 0 {
		dst = append(dst, p.part...)
		rest = rest[min(p.location, len(rest)):]
	}
	if p.escape {
		dst = appendEscaped(dst, rest)
	} else {
		dst = append(dst, rest...)
	}
	if p.args != "" {
		dst = append(append(dst, '?'), p.args...)
	}
	return dst
}

// appendEscaped writes a decoded path so that it can stand in a request line and means the same: nginx escapes these
// bytes and no others.
func appendEscaped(dst []byte, path string) []byte {
	for i := range len(path) {
		if c := path[i]; mustEscape[c] {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

const hexDigits = "0123456789ABCDEF"

var mustEscape = func() (set [256]bool) {
	for c := range set {
		set[c] = c <= ' ' || c >= 0x7f
	}
	for _, c := range []byte("\"#%<>?\\^`{|}") {
		set[c] = true
	}
	return set
}()

// appendTarget writes a target that variables made. nginx sends such a text as it is; bytes that would end the request
// line, or split it into two requests, are escaped here.
func appendTarget(dst []byte, target string) []byte {
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c == 0x7f {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}
