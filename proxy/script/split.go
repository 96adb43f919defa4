package script

import "fmt"

// Split divides texts among values by shares. The same text always gets the same value. The zero value gives every text
// the empty one. Looking up is safe for concurrent use once nothing is added.
type Split struct {
	parts []share
	sum   int // hundredths of a percent
}

type share struct {
	below uint32 // hashes under it are the share's
	rest  bool   // takes all that comes to it
	value string
}

const whole = 10000 // hundredths of a percent

// Add gives a value the next share, in hundredths of a percent; 0: all that is left, and more than that is then too much.
func (s *Split) Add(hundredths int, value string) error {
	sum := s.sum + hundredths
	if hundredths == 0 {
		sum = whole
	}
	if hundredths < 0 || hundredths > whole || sum > whole {
		return fmt.Errorf("the shares are more than 100%%")
	}
	s.sum = sum
	next := share{rest: hundredths == 0, value: value}
	if n := len(s.parts); n > 0 {
		next.below = s.parts[n-1].below
	}
	next.below += uint32(uint64(hundredths) * 0xffffffff / whole) // each share rounded by itself, as nginx does
	s.parts = append(s.parts, next)
	return nil
}

// Find is the value of a text.
func (s *Split) Find(text string) string {
	h := murmur(text)
	for i := range s.parts {
		if p := &s.parts[i]; h < p.below || p.rest {
			return p.value
		}
	}
	return ""
}

// murmur is MurmurHash2 of Austin Appleby, of 32 bits and with the seed 0, which nginx divides clients by.
func murmur(text string) uint32 {
	const m = 0x5bd1e995
	h := uint32(len(text))
	for ; len(text) >= 4; text = text[4:] {
		k := uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24
		k *= m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	switch len(text) {
	case 3:
		h ^= uint32(text[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(text[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(text[0])) * m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}
