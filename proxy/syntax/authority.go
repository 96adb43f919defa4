package syntax

import (
	"bytes"
	"net/netip"
)

var twoDots = []byte("..")

// IsAuthority tells whether s is a host's name or an address, with or without a port. An address of IPv6 stands in brackets;
// no label but the one behind a final dot is empty.
func IsAuthority(s []byte) bool {
	host, port := s, []byte(nil)
	if len(s) > 0 && s[0] == '[' {
		end := bytes.IndexByte(s, ']')
		if end < 0 {
			return false
		}
		if a, err := netip.ParseAddr(string(s[1:end])); err != nil || !a.Is6() || a.Zone() != "" {
			return false
		}
		if port = s[end+1:]; len(port) > 0 && port[0] != ':' {
			return false
		}
		return len(port) == 0 || All(port[1:], Digit)
	}
	if i := bytes.IndexByte(s, ':'); i >= 0 {
		host, port = s[:i], s[i+1:]
	}
	return len(host) > 0 && host[0] != '.' && All(host, Authority) && !bytes.Contains(host, twoDots) && All(port, Digit)
}
