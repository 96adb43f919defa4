package forward

import "bytes"

// notInTrailers are fields that must not come after the body: they say how the message is framed, routed, authenticated
// or read, and by then that has been decided.
var notInTrailers = [...]string{
	"Content-Length", "Content-Encoding", "Content-Type", "Content-Range", "Host", "Trailer", "Authorization",
	"Proxy-Authorization", "Cookie", "Expect", "Range", "Max-Forwards", "Cache-Control",
}

func inTrailers(name []byte) bool {
	for _, n := range notInTrailers {
		if is(name, n) {
			return false
		}
	}
	return isToken(name)
}

// trailers are the fields after an answer's body that go on; pass says it of fields in the head.
func trailers(fields []Field, pass func(name []byte) bool) []Field {
	var out []Field
	for _, f := range fields {
		if inTrailers(f.Name) && pass(f.Name) {
			out = append(out, f)
		}
	}
	return out
}

// trailerNames leaves of a Trailer field's list the names that may be announced; nil when none is left.
func trailerNames(list []byte, pass func(name []byte) bool) []byte {
	var out []byte
	for name := range bytes.SplitSeq(list, []byte(",")) {
		if name = bytes.TrimSpace(name); !inTrailers(name) || !pass(name) {
			continue
		}
		if out != nil {
			out = append(out, ", "...)
		}
		out = append(out, name...)
	}
	return out
}

// isToken tells whether s may be a field's name.
func isToken(s []byte) bool {
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0:
		default:
			return false
		}
	}
	return len(s) > 0
}
