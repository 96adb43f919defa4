package accesslog

// Escape says how values are written, so that no value can be taken for more than one.
type Escape uint8

// The ways of nginx's log_format.
const (
	Default Escape = iota // `"`, `\`, control and 8-bit bytes as \xHH; what is not there as -
	JSON                  // as in a JSON string; what is not there as nothing
	None                  // as it is; what is not there as nothing
)

// ParseEscape reads the value of log_format's escape=.
func ParseEscape(word string) (Escape, bool) {
	switch word {
	case "default":
		return Default, true
	case "json":
		return JSON, true
	case "none":
		return None, true
	}
	return 0, false
}

// Combined is the format of that name, which always exists.
const Combined = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`

// Append writes a value that is there, or not, as e says.
func (e Escape) Append(line []byte, value string, found bool) []byte {
	switch {
	case !found && e == Default:
		return append(line, '-')
	case e == Default:
		return appendDefault(line, value)
	case e == JSON:
		return appendJSON(line, value)
	}
	return append(line, value...)
}

const hexDigits = "0123456789ABCDEF"

// plain are the bytes that no way of escaping changes.
var plain = func() (set [256]bool) {
	for c := ' '; c < 127; c++ {
		set[c] = c != '"' && c != '\\'
	}
	return set
}()

// plainTo is the length of the part of s that no way of escaping changes.
func plainTo(s string) int {
	i := 0
	for i < len(s) && plain[s[i]] {
		i++
	}
	return i
}

func appendDefault(line []byte, s string) []byte {
	for {
		n := plainTo(s)
		line = append(line, s[:n]...)
		if n == len(s) {
			return line
		}
		c := s[n]
		line = append(line, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		s = s[n+1:]
	}
}

func appendJSON(line []byte, s string) []byte {
	for {
		n := plainTo(s)
		line = append(line, s[:n]...)
		if n == len(s) {
			return line
		}
		c := s[n]
		s = s[n+1:]
		switch {
		case c == '"' || c == '\\':
			line = append(line, '\\', c)
		case c == '\n':
			line = append(line, `\n`...)
		case c == '\r':
			line = append(line, `\r`...)
		case c == '\t':
			line = append(line, `\t`...)
		case c == '\b':
			line = append(line, `\b`...)
		case c == '\f':
			line = append(line, `\f`...)
		case c < 32:
			line = append(line, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			line = append(line, c)
		}
	}
}
