package syntax

import (
	"bytes"
	"net/netip"
)

// IsAuthority tells whether s is a host's name or an address, with or without a port. An address of IPv6 stands in brackets;
// no label but the one behind a final dot is empty.
func IsAuthority(s []byte) bool {
	if len(s) > 0 && s[0] == '[' {
		end := bytes.IndexByte(s, ']')
		if end < 0 {
			return false
		}
		if a, err := netip.ParseAddr(string(s[1:end])); err != nil || !a.Is6() || a.Zone() != "" {
			return false
		}
		port := s[end+1:]
		return len(port) == 0 || port[0] == ':' && All(port[1:], Digit)
	}
	before := byte('.')
	for i, c := range s {
		if c == ':' {
			return i > 0 && All(s[i+1:], Digit)
		}
		if chars[c]&Authority == 0 || c == '.' && before == '.' {
			return false
		}
		before = c
	}
	return len(s) > 0
}
