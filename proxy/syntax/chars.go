package syntax

import (
	"encoding/binary"
	"math/bits"
)

// What is allowed where, one bit each for every byte.
const (
	Token     = 1 << iota // of a method and of a field's name
	Value                 // of a field's value, with obs-text
	Target                // of a target and an authority that are sent: anything but space, controls and DEL
	Asked                 // of a target that a client may send: those but '#', which ends what a backend may look at
	Method                // of a client's method, as nginx has it: A to Z, '-' and '_'
	Authority             // of a host's name, without escapes
	Digit
	Plain // of a field's name that everybody takes: letters, digits and '-'
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
	mark(letters+"0123456789-", Plain)
	return t
}()

// Is tells whether a byte is of the kind.
func Is(c byte, kind byte) bool { return chars[c]&kind != 0 }

// All tells whether each byte of s is of the kind.
func All(s []byte, kind byte) bool { return Span(s, kind) == len(s) }

// Span is how many of the first bytes of s are of the kind.
func Span(s []byte, kind byte) int {
	i := 0
	for i < len(s) && chars[s[i]]&kind != 0 {
		i++
	}
	return i
}

// IsToken is All(s, Token) of something that is not empty.
func IsToken(s []byte) bool {
	n, _ := tokens(s)
	return n > 0 && n == len(s)
}

// IsValue is All(s, Value).
func IsValue(s []byte) bool { return values(s) == len(s) }

// tokens is how many of the first bytes of s may stand in a field's name, and whether all of those are Plain: eight at a time
// of those that names are made of, letters and '-'.
func tokens(s []byte) (n int, plain bool) {
	all := byte(Plain)
	for n+8 <= len(s) {
		found := unnamed(binary.LittleEndian.Uint64(s[n : n+8]))
		if found == 0 {
			n += 8
			continue
		}
		n += bits.TrailingZeros64(found) / 8
		kinds := chars[s[n]]
		if kinds&Token == 0 {
			return n, all != 0
		}
		all &= kinds
		n++
	}
	if rest := len(s) - n; rest > 0 && len(s) >= 8 {
		found := unnamed(last(s, rest)) & (1<<(8*rest) - 1)
		if found == 0 {
			return len(s), all != 0
		}
		n += bits.TrailingZeros64(found) / 8
	}
	for ; n < len(s) && chars[s[n]]&Token != 0; n++ {
		all &= chars[s[n]]
	}
	return n, all != 0
}

// values is how many of the first bytes of s may stand in a field's value, eight at a time.
func values(s []byte) int {
	i := 0
	for i+8 <= len(s) {
		found := controls(binary.LittleEndian.Uint64(s[i : i+8]))
		if found == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(found) / 8; s[i] != '\t' {
			return i
		}
		i++
	}
	if rest := len(s) - i; rest > 0 && len(s) >= 8 {
		found := controls(last(s, rest)) & (1<<(8*rest) - 1)
		if found == 0 {
			return len(s)
		}
		i += bits.TrailingZeros64(found) / 8
	}
	return i + Span(s[i:], Value)
}

// last is a word of the last n bytes of s, of which there are eight at least.
func last(s []byte, n int) uint64 { return binary.LittleEndian.Uint64(s[len(s)-8:]) >> (64 - 8*n) }

// Eight bytes are looked at in one word. Where the highest bit of each is out of the way, a sum that stays below 0x100 in each
// byte sets it as a comparison would, and no byte touches the next one.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// controls marks, by their highest bits, which of eight bytes are below 0x20 or are DEL.
func controls(x uint64) uint64 {
	low := x &^ tops
	return (low + ones | ^(low + 0x60*ones)) &^ x & tops
}

// unnamed marks, by their highest bits, which of eight bytes are neither letters nor '-'.
func unnamed(x uint64) uint64 {
	small := (x | 0x20*ones) &^ tops
	letter := (small + (0x80-'a')*ones) &^ (small + (0x7f-'z')*ones)
	dash := tops - (x^'-'*ones)&^tops
	return (x | ^(letter | dash)) & tops
}

// Equal compares a name, without regard to case, with one in lower case letters, digits and '-'.
func Equal(have []byte, name string) bool { return len(have) == len(name) && equal(have, name) }

// equal is Equal of what is equally long: A to Z become small, and nothing else becomes a small letter, '-' or a digit.
func equal(have []byte, name string) bool {
	i := 0
	for ; i+8 <= len(name) && i+8 <= len(have); i += 8 {
		x := binary.LittleEndian.Uint64(have[i : i+8])
		if x|x&(0x40*ones)>>1 != word(name[i:i+8]) {
			return false
		}
	}
	for ; i < len(name) && i < len(have); i++ {
		if c := have[i]; c|c&0x40>>1 != name[i] {
			return false
		}
	}
	return true
}

// word is the first eight bytes of s, in one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
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
