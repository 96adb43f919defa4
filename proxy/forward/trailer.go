package forward

import (
	"bytes"

	"github.com/upstrand/upstrand/proxy/syntax"
)

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
	return len(name) > 0 && syntax.All(name, syntax.Token)
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

// FieldsOf is lines behind a body, in the words of the boundary; nil when there are none.
func FieldsOf(lines []syntax.Line) []Field {
	if len(lines) == 0 {
		return nil
	}
	out := make([]Field, len(lines))
	for i, l := range lines {
		out[i] = Field(l)
	}
	return out
}
