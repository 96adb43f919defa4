package simulate

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/upstrand/upstrand/proxy/site"
)

// The ports of URLs that name none.
const (
	portHTTP  = 80
	portHTTPS = 443
)

// arrive lets the request come in at one of the listens, as scheme and port say: at one of that port; without a port at
// the scheme's own, else at the first one that speaks it. When neither is said it is port 80, else the first one. What is
// said of it is empty where there was nothing to choose.
func (a Ask) arrive(t *template, listens []site.Listen) (said string, err error) {
	if len(listens) == 0 {
		return "", nil
	}
	l, err := a.listen(t, listens)
	if err != nil {
		return "", err
	}
	if a.Scheme == "" {
		t.secure = l.TLS
	}
	switch {
	case t.secure && !l.TLS:
		return "", fmt.Errorf("%s speaks no TLS; listens: %s", listenText(l), listenTexts(listens))
	case !t.secure && l.TLS:
		return "", fmt.Errorf("%s speaks TLS: a request in the clear is answered 400 there, or as error_page 497 says; listens: %s", listenText(l), listenTexts(listens))
	}
	ip := l.Addr.Addr()
	if ip.IsUnspecified() {
		if ip = arrival.Addr(); l.Addr.Addr().Is6() {
			ip = netip.IPv6Loopback()
		}
	}
	t.local = netip.AddrPortFrom(ip, l.Addr.Port())
	usual := portHTTP
	if t.secure {
		usual = portHTTPS
	}
	switch {
	case a.Scheme != "" && a.Port == 0 && int(l.Addr.Port()) != usual:
		return fmt.Sprintf("arrives at %s: nothing that speaks %s listens on port %d", listenText(l), a.Scheme, usual), nil
	case places(listens) < 2:
		return "", nil
	case a.Scheme == "" && a.Port == 0:
		return fmt.Sprintf("arrives at %s: the file has several listens, and neither scheme nor port says which; listens: %s", listenText(l), listenTexts(listens)), nil
	}
	return "arrives at " + listenText(l), nil
}

// listen is the one that scheme, port and an address in the place of the host choose.
func (a Ask) listen(t *template, listens []site.Listen) (site.Listen, error) {
	port, secure := a.Port, t.secure
	if port == 0 {
		port = portHTTP
		if secure {
			port = portHTTPS
		}
	}
	host, _ := netip.ParseAddr(strings.Trim(strings.TrimSuffix(t.host, fmt.Sprintf(":%d", port)), "[]"))
	best, rank := site.Listen{}, 0
	for _, l := range listens {
		atPort, speaks := int(l.Addr.Port()) == port, l.TLS == secure || a.Scheme == ""
		now := 0
		switch {
		case a.Port != 0 && !atPort, a.Port == 0 && !speaks:
			continue
		case atPort && l.Addr.Addr() == host:
			now = 3
		case atPort:
			now = 2
		default:
			now = 1
		}
		if now > rank {
			best, rank = l, now
		}
	}
	switch {
	case rank > 0:
		return best, nil
	case a.Port != 0:
		return best, fmt.Errorf("nothing listens on port %d; listens: %s", a.Port, listenTexts(listens))
	}
	return best, fmt.Errorf("no listen speaks %s; listens: %s", a.Scheme, listenTexts(listens))
}

// places counts the listens; that of all IPv4 addresses and that of all IPv6 addresses of a port are one.
func places(listens []site.Listen) int {
	seen := map[netip.AddrPort]bool{}
	for _, l := range listens {
		at := l.Addr
		if at.Addr().IsUnspecified() {
			at = netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
		}
		seen[at] = true
	}
	return len(seen)
}

func listenText(l site.Listen) string {
	text := l.Addr.String()
	if l.TLS {
		text += " ssl"
	}
	if l.Line > 0 {
		text += fmt.Sprintf(" (%s:%d)", l.File, l.Line)
	}
	return text
}

func listenTexts(listens []site.Listen) string {
	all := make([]string, len(listens))
	for i, l := range listens {
		all[i] = listenText(l)
	}
	return strings.Join(all, ", ")
}
