package dialect

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"github.com/upstrand/upstrand/confgen/topology"
)

// checkText finds what no configuration file has: bytes that are no text, and templates that were not rendered. It is
// looked for before the words, since its faults say more than what follows from it.
func checkText(file string, text []byte) *topology.Fault {
	fault := func(at int, reason, allowed string) *topology.Fault {
		return &topology.Fault{File: file, Line: 1 + bytes.Count(text[:at], []byte("\n")), Reason: reason, Allowed: allowed}
	}
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return fault(0, "the file begins with a byte order mark", "plain UTF-8")
	}
	if i := bytes.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f }); i >= 0 {
		return fault(i, "control character", "text in UTF-8")
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return fault(i, "not UTF-8", "text in UTF-8")
		}
		i += size
	}
	for from := 0; ; {
		at := templateMark.FindIndex(text[from:])
		if at == nil {
			return nil
		}
		begin, end := from+at[0], from+at[1]
		if !inComment(text, begin) {
			return fault(begin, "this is a template ("+clip(string(text[begin:end]))+"): it must be rendered first", "the file that the template's tool makes of it")
		}
		from = end // and the rest of the line is a comment too
		if line := bytes.IndexByte(text[end:], '\n'); line >= 0 {
			from += line
		} else {
			return nil
		}
	}
}

// templateMark is what templates have: {{ … }} of Go, Jinja and others, {% … %}, <%= … %>.
var templateMark = regexp.MustCompile(`\{\{-?\s*[.$A-Za-z_"#/(][^\n]*?\}\}|\{%[-+]?\s*[a-z]+[^\n]*?%\}|<%=?\s[^\n]*?%>`)

// inComment tells whether the line has a # before that place, as its first mark. Of a longer line it looks at the last
// few thousand bytes.
func inComment(text []byte, at int) bool {
	line := text[max(at-maxWord, 0):at]
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	return bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("#")) || bytes.Contains(line, []byte(" #"))
}

// shellName is what envsubst fills in: ${NAME} in capitals, which no variable of nginx has.
var shellName = regexp.MustCompile(`\$\{[A-Z][A-Z0-9_]*\}`)
