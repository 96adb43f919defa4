package registry

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AgentPrefix begins the names of our own services: rows like any other, but never routed to, claiming nothing, and not
// counted by the guard.
const AgentPrefix = "upstrand-"

// IsAgent reports whether instances of the service are ours.
func IsAgent(service string) bool { return strings.HasPrefix(service, AgentPrefix) }

// IsServiceName reports whether a service can have that name: up to 64 of a-z, 0-9, dot, _ and -, with a letter or digit at
// both ends.
func IsServiceName(name string) bool {
	plain := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	if name == "" || len(name) > 64 || !plain(name[0]) || !plain(name[len(name)-1]) {
		return false
	}
	return strings.IndexFunc(name, func(c rune) bool { return c > 0x7f || !plain(byte(c)) && c != '.' && c != '_' && c != '-' }) < 0
}

// RoutePath is the canonical form of a served URL path, in which claims are stored: without a slash at its end, but for
// "/" itself. A route /x matches /x and /x/…, so /x and /x/ are one route. Empty stays empty: no default route.
func RoutePath(url string) string {
	if url == "" {
		return ""
	}
	if p := strings.TrimRight(url, "/"); p != "" {
		return p
	}
	return "/"
}

// address is where an instance is reached, as claims are made of it: "ip:port", "[ip6]:port".
func address(a *Attrs) string {
	if a.IP == "" {
		return ""
	}
	return net.JoinHostPort(a.IP, strconv.Itoa(a.Port))
}

// sameAttrs is the test that every steady beat passes, so it looks first at what is most likely to differ.
func sameAttrs(a, b *Attrs) bool {
	return a.Weight == b.Weight && a.Port == b.Port && a.IP == b.IP && a.Scheme == b.Scheme && a.URL == b.URL &&
		a.MaxConns == b.MaxConns && a.MaxFails == b.MaxFails && a.FailTimeout == b.FailTimeout &&
		a.SlowStart == b.SlowStart && a.Zone == b.Zone && a.Version == b.Version &&
		slices.Equal(a.Tags, b.Tags) && sameMeta(a.Meta, b.Meta)
}

func sameMeta(a, b map[string]string) bool { return len(a) == 0 && len(b) == 0 || maps.Equal(a, b) }

// unstorable says why a sighting does not fit the registry's columns, empty when it does. Decoders refuse such beats
// before; this keeps one that slips through from stopping its partition for ever.
func unstorable(s *Sighting) string {
	a := &s.Attrs
	switch {
	case s.Service == "" || len(s.Service) > 64 || !isASCII(s.Service):
		return "service is empty, longer than 64 or not ASCII"
	case s.ID == "" || len(s.ID) > 64 || !isASCII(s.ID):
		return "id is empty, longer than 64 or not ASCII"
	case s.Status != StatusUp && s.Status != StatusDraining && s.Status != StatusLeaving:
		return "status is unknown"
	case s.Incarnation < 0 || s.Seq < 0:
		return "incarnation or seq is negative"
	case s.Status == StatusLeaving:
		return "" // nothing else of it is stored
	case s.StaleAfter <= 0:
		return "stale limit is not positive"
	case len(a.IP) > 64 || !isASCII(a.IP) || a.IP == "" && !IsAgent(s.Service):
		return "ip is empty, longer than 64 or not ASCII"
	case len(a.Scheme) > 8 || !isASCII(a.Scheme):
		return "scheme is longer than 8 or not ASCII"
	case !fits(a.URL, 255) || !fits(a.Zone, 64) || !fits(a.Version, 64):
		return "url, zone or version is too long or not UTF-8"
	case len(tagsText(a.Tags)) > maxText || len(metaText(a.Meta)) > maxText:
		return "tags or meta are too long"
	}
	return ""
}

// maxText is what a TEXT column holds, in bytes.
const maxText = 65535

func fits(s string, n int) bool {
	return (len(s) <= n || utf8.RuneCountInString(s) <= n) && utf8.ValidString(s)
}
