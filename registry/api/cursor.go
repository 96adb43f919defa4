package api

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A cursor is the key of the last row of a page with the kind of list that it belongs to, in base64url. Callers are
// told that it is opaque; it carries no secret and needs no signature, since a made-up one can only choose a place.

// maxCursor bounds a cursor. The longest key is a topology record's, 400 characters.
const maxCursor = 4096

// The kinds of lists that have cursors.
const (
	cursorServices  = "s1"
	cursorInstances = "i1"
	cursorAgents    = "a1"
	cursorEvents    = "e1"
	cursorVersions  = "v1"
	cursorTopology  = "t1"
	cursorRejected  = "r1"
	cursorDeclared  = "d1"
	cursorUpstrands = "u1"
)

// cursorParts is how many parts the key of each kind has.
var cursorParts = map[string]int{
	cursorServices: 1, cursorInstances: 2, cursorAgents: 2, cursorEvents: 1, cursorVersions: 1, cursorTopology: 2, cursorRejected: 3, cursorDeclared: 1, cursorUpstrands: 1,
}

var errCursor = errors.New("is not a cursor of this list")

// encodeCursor packs the parts, none of which may hold a NUL.
func encodeCursor(kind string, parts ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + "\x00" + strings.Join(parts, "\x00")))
}

// decodeCursor unpacks a cursor of this kind. It accepts exactly what encodeCursor makes.
func decodeCursor(kind, cursor string) ([]string, error) {
	if len(cursor) > maxCursor {
		return nil, errCursor
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || !utf8.Valid(raw) {
		return nil, errCursor
	}
	parts := strings.Split(string(raw), "\x00")
	if len(parts) != 1+cursorParts[kind] || encodeCursor(kind, parts[1:]...) != cursor {
		return nil, errCursor
	}
	return parts[1:], nil
}

// decodeNumbers is decodeCursor for keys of numbers.
func decodeNumbers(kind, cursor string) ([]int64, error) {
	parts, err := decodeCursor(kind, cursor)
	if err != nil {
		return nil, err
	}
	numbers := make([]int64, len(parts))
	for i, p := range parts {
		if numbers[i], err = strconv.ParseInt(p, 10, 64); err != nil || strconv.FormatInt(numbers[i], 10) != p {
			return nil, errCursor
		}
	}
	return numbers, nil
}

func encodeNumbers(kind string, numbers ...int64) string {
	parts := make([]string, len(numbers))
	for i, n := range numbers {
		parts[i] = strconv.FormatInt(n, 10)
	}
	return encodeCursor(kind, parts...)
}
