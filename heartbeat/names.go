package heartbeat

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What the names and addresses of a beat look like, for people and for the schema. The functions below decide.
const (
	allowedService = "[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?"
	allowedID      = "[A-Za-z0-9._:-]{1,64}"
	allowedZone    = "[A-Za-z0-9._-]{1,64}"
	allowedVersion = "[A-Za-z0-9._+~:-]{1,64}"
	allowedTag     = "[A-Za-z0-9._:/=+@-]{1,64}"
	allowedMetaKey = "[A-Za-z0-9._/-]{1,64}"
	allowedSentAt  = "a time of RFC 3339, not before 1970, such as 2026-11-29T12:00:00.5Z"
	allowedIP      = "the address of a host: IPv4 or IPv6, with or without brackets; not in 0.0.0.0/8, 169.254.0.0/16, 240.0.0.0/4, fe80::/10, not ::, multicast or with a zone"
	allowedURL     = "the path of a URL in decoded form, at most 255 bytes: begins with /, without empty, . or .. segments, query, fragment, %, control characters or spaces"
)

const (
	allowedRecord = "one JSON object, in UTF-8"
	allowedSerial = "1 to 9007199254740991"
)

// Character classes of the names, as bits.
const (
	lower = 1 << iota
	upper
	digit
	inService // . _ -
	inID      // . _ - :
	inVersion // . _ - : + ~
	inTag     // . _ - : / = + @
	inMetaKey // . _ - /
	inPath    // what RFC 3986 lets stand in a path, but for %
)

var classes = func() (c [256]uint16) {
	for b := byte('a'); b <= 'z'; b++ {
		c[b] |= lower
		c[b-'a'+'A'] |= upper
	}
	for b := byte('0'); b <= '9'; b++ {
		c[b] |= digit
	}
	for class, set := range map[uint16]string{
		inService: "._-", inID: "._-:", inVersion: "._-:+~", inTag: "._-:/=+@", inMetaKey: "._-/",
		inPath: "/-._~!$&'()*+,;=:@",
	} {
		for _, b := range []byte(set) {
			c[b] |= class
		}
	}
	return c
}()

// consists reports whether s has 1 to MaxName bytes, all of the classes.
func consists(s string, of uint16) bool {
	if len(s) == 0 || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		if classes[s[i]]&of == 0 {
			return false
		}
	}
	return true
}

func isService(s string) bool {
	if !consists(s, lower|digit|inService) {
		return false
	}
	return classes[s[0]]&inService == 0 && classes[s[len(s)-1]]&inService == 0
}

// notHosts are the addresses at which no instance can be, besides multicast. Link-local ones mean another host on each
// network, and clouds answer at 169.254.169.254 with credentials: a proxy that was told to forward there would hand them
// to any client. Loopback and private addresses are where instances live, so a beat may name them.
var notHosts = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // "this network"
	netip.MustParsePrefix("169.254.0.0/16"), // link-local
	netip.MustParsePrefix("240.0.0.0/4"),    // reserved, with the broadcast address
	netip.MustParsePrefix("::/128"),         // unspecified
	netip.MustParsePrefix("fe80::/10"),      // link-local
}

func isHost(ip netip.Addr) bool {
	if ip.IsMulticast() {
		return false
	}
	for _, p := range notHosts {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

func canonicalIP(s string) (string, bool) {
	text := s
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if text, ok = strings.CutSuffix(inner, "]"); !ok || !strings.Contains(text, ":") {
			return "", false
		}
	}
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" {
		return "", false
	}
	ip = ip.Unmap()
	if !isHost(ip) {
		return "", false
	}
	return ip.String(), true
}

// isPath reports whether s is a clean path in decoded form. Requests are matched against their decoded and normalised
// path, so a route that is neither could never match.
func isPath(s string) bool {
	if len(s) > MaxURL || s[0] != '/' {
		return false
	}
	for i, r := range s {
		switch {
		case r < utf8.RuneSelf && classes[byte(r)]&(lower|upper|digit|inPath) == 0:
			return false
		case r >= utf8.RuneSelf && (r == utf8.RuneError || !unicode.IsGraphic(r) || unicode.IsSpace(r)):
			return false
		case r == '/' && !isSegment(s[i+1:]):
			return false
		}
	}
	return true
}

// isSegment reports whether the first segment of rest may follow a slash: it is the last and empty, or it is a name.
func isSegment(rest string) bool {
	segment, _, more := strings.Cut(rest, "/")
	return segment != "." && segment != ".." && (segment != "" || !more)
}

func isMetaKey(s string) bool   { return consists(s, lower|upper|digit|inMetaKey) }
func isMetaValue(s string) bool { return len(s) <= MaxMetaValue && isPlain(s) }

// isPlain reports whether s is UTF-8 text without control characters.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return isPlainSlow(s)
		}
	}
	return true
}

func isPlainSlow(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
