package simulate

import (
	"errors"
	"strings"
)

var errQuote = errors.New(`a quotation mark " is not closed`)

// words splits a line at blanks. What stands in double quotes holds together, and \" and \\ are themselves in there. An
// unquoted # begins a comment.
func words(line string) ([]string, error) {
	var (
		out           []string
		word          strings.Builder
		begun, quoted bool
	)
	end := func() {
		if begun {
			out = append(out, word.String())
			word.Reset()
			begun = false
		}
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quoted && c == '\\' && i+1 < len(line) && (line[i+1] == '"' || line[i+1] == '\\'):
			i++
			word.WriteByte(line[i])
		case c == '"':
			quoted, begun = !quoted, true
		case quoted:
			word.WriteByte(c)
		case c == ' ' || c == '\t' || c == '\r':
			end()
		case c == '#' && !begun:
			return out, nil
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	if quoted {
		return nil, errQuote
	}
	end()
	return out, nil
}
