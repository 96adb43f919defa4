package syntax

import (
	"bytes"
	"errors"
)

// What can be wrong with a line of a head, or of what follows a body.
var (
	ErrBareLF     = errors.New("a line of the head ends in LF without CR")
	ErrFolded     = errors.New("a folded line in the head")
	ErrFieldName  = errors.New("bad field name")
	ErrFieldValue = errors.New("control character in a field's value")
	ErrLength     = errors.New("bad Content-Length")
)

// Split divides a line, without its end, into a field's name and value. The line is not empty.
func Split(line []byte) (name, value []byte, err error) {
	if line[0] == ' ' || line[0] == '\t' {
		return nil, nil, ErrFolded
	}
	i, _ := tokens(line)
	if i == 0 || i == len(line) || line[i] != ':' {
		return nil, nil, ErrFieldName
	}
	name, value = line[:i:i], Trim(line[i+1:])
	if !IsValue(value) {
		return nil, nil, ErrFieldValue
	}
	return name, value[:len(value):len(value)], nil
}

// Next reads a line with its end from the beginning of b, in one pass, and gives how many bytes that were: 0 when the line has
// not come whole, is empty, or is not good. What is wrong with it, Split says.
func Next(b []byte) (name, value []byte, n int) {
	name, value, n, _ = NextPlain(b)
	return name, value, n
}

// NextPlain is Next, and tells whether the name is Plain.
func NextPlain(b []byte) (name, value []byte, n int, plain bool) {
	colon, plain := tokens(b)
	if colon == 0 || colon == len(b) || b[colon] != ':' {
		return nil, nil, 0, false
	}
	from := colon + 1
	for from < len(b) && (b[from] == ' ' || b[from] == '\t') {
		from++
	}
	end := from + values(b[from:])
	if end+1 >= len(b) || b[end] != '\r' || b[end+1] != '\n' {
		return nil, nil, 0, false
	}
	n = end + 2
	for end > from && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	return b[:colon:colon], b[from:end:end], n, plain
}

// maxDigits bounds a Content-Length, so that it fits into 63 bits.
const maxDigits = 18

// Length reads the value of a Content-Length field.
func Length(s []byte) (int64, error) {
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	if len(s) == 0 || len(s) > maxDigits {
		return 0, ErrLength
	}
	n := int64(0)
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, ErrLength
		}
		n = n*10 + int64(c-'0')
	}
	return n, nil
}

// HasToken looks for a token, in lower case, in a comma-separated list.
func HasToken(list []byte, token string) bool {
	for len(list) > 0 {
		item := list
		if i := bytes.IndexByte(list, ','); i >= 0 {
			item, list = list[:i], list[i+1:]
		} else {
			list = nil
		}
		if Equal(Trim(item), token) {
			return true
		}
	}
	return false
}
