package http1

// What RFC 9110 and 9112 allow where, one bit each for every byte.
const (
	inToken  = 1 << iota // of a method and of a field's name
	inValue              // of a field's value, with obs-text
	inTarget             // of a request's target and of an authority: anything but space, controls and DEL
)

var chars = func() (t [256]byte) {
	for c := range 256 {
		switch {
		case c == '\t':
			t[c] |= inValue
		case c < ' ' || c == 0x7f:
		default:
			t[c] |= inValue
			if c != ' ' {
				t[c] |= inTarget
			}
		}
	}
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] |= inToken
	}
	return t
}()

// all tells whether each byte of s is of the kind.
func all(s []byte, kind byte) bool {
	for _, c := range s {
		if chars[c]&kind == 0 {
			return false
		}
	}
	return true
}

// is compares a name, without regard to case, with one in lower case letters and '-'.
func is(have []byte, name string) bool {
	if len(have) != len(name) {
		return false
	}
	for i, c := range have {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// trim takes the optional white space off both ends.
func trim(s []byte) []byte {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}
