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
	i := 0
	for i < len(line) && chars[line[i]]&Token != 0 {
		i++
	}
	if i == 0 || i == len(line) || line[i] != ':' {
		return nil, nil, ErrFieldName
	}
	name, value = line[:i:i], Trim(line[i+1:])
	if !IsValue(value) {
		return nil, nil, ErrFieldValue
	}
	return name, value[:len(value):len(value)], nil
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
