package http1

import "github.com/upstrand/upstrand/proxy/syntax"

// What RFC 9110 and 9112 allow where; see package syntax.
const inTarget = syntax.Target

// all tells whether each byte of s is of the kind.
func all(s []byte, kind byte) bool { return syntax.All(s, kind) }

// inValue tells whether s may be a field's value.
func inValue(s []byte) bool { return syntax.IsValue(s) }

// is compares a name, without regard to case, with one in lower case letters and '-'.
func is(have []byte, name string) bool { return syntax.Equal(have, name) }

func hasToken(list []byte, token string) bool { return syntax.HasToken(list, token) }
