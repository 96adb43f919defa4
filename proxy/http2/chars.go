package http2

import "github.com/upstrand/upstrand/proxy/syntax"

// only tells whether each byte of s is of the kind, one of package syntax's.
func only[T string | []byte](s T, kind byte) bool {
	for i := range len(s) {
		if !syntax.Is(s[i], kind) {
			return false
		}
	}
	return true
}
