package syntax

import "encoding/binary"

// What is allowed where, one bit each for every byte.
const (
	Token     = 1 << iota // of a method and of a field's name
	Value                 // of a field's value, with obs-text
	Target                // of a target and an authority that are sent: anything but space, controls and DEL
	Asked                 // of a target that a client may send: those but '#', which ends what a backend may look at
	Method                // of a client's method, as nginx has it: A to Z, '-' and '_'
	Authority             // of a host's name, without escapes
	Digit
)

var chars = func() (t [256]byte) {
	for c := range 256 {
		switch {
		case c == '\t':
			t[c] |= Value
		case c < ' ' || c == 0x7f:
		default:
			t[c] |= Value
			if c != ' ' {
				t[c] |= Target
			}
			if c != ' ' && c != '#' {
				t[c] |= Asked
			}
		}
	}
	mark := func(set string, kind byte) {
		for i := range len(set) {
			t[set[i]] |= kind
		}
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	mark(letters+"0123456789!#$%&'*+-.^_`|~", Token)
	mark("ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", Method)
	mark(letters+"0123456789-._~!$&'()*+,;=", Authority)
	mark("0123456789", Digit)
	return t
}()

// Is tells whether a byte is of the kind.
func Is(c byte, kind byte) bool { return chars[c]&kind != 0 }

// All tells whether each byte of s is of the kind.
func All(s []byte, kind byte) bool {
	for _, c := range s {
		if chars[c]&kind == 0 {
			return false
		}
	}
	return true
}

// IsValue is All(s, Value), eight bytes at a time.
func IsValue(s []byte) bool {
	for len(s) >= 8 {
		if suspicious(binary.LittleEndian.Uint64(s)) && !All(s[:8], Value) {
			return false
		}
		s = s[8:]
	}
	return All(s, Value)
}

// suspicious tells whether one of eight bytes is below 0x20 or is DEL. See "Bit Twiddling Hacks" (Sean Eron Anderson),
// "Determine if a word has a byte less than n".
func suspicious(x uint64) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	del := x ^ 0x7f*ones
	return ((x-0x20*ones)&^x|(del-ones)&^del)&tops != 0
}

// Equal compares a name, without regard to case, with one in lower case letters and '-'.
func Equal(have []byte, name string) bool {
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

// Trim takes the optional white space off both ends.
func Trim(s []byte) []byte {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}
