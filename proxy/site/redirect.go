package site

import (
	"net/netip"
	"strconv"
	"strings"
)

// absolute makes a Location that is a path a whole address, unless absolute_redirect is off: with the scheme of the
// request, the name that the client used and the port that it came to.
func (r *request) absolute(location string) string {
	if !strings.HasPrefix(location, "/") || r.conf == nil || !r.conf.core.absolute {
		return location
	}
	b := make([]byte, 0, len(location)+64)
	scheme, usual := "http://", uint16(80)
	if r.in.Secure {
		scheme, usual = "https://", 443
	}
	b = append(b, scheme...)
	switch {
	case r.conf.core.serverName: // be it empty, as in nginx
		b = append(b, r.server.name...)
	case r.host != "":
		b = append(b, r.host...)
	default:
		b = appendHost(b, r.in.Local.Addr())
	}
	if port := r.in.Local.Port(); r.conf.core.port && port != usual && port != 0 {
		b = strconv.AppendUint(append(b, ':'), uint64(port), 10)
	}
	return string(append(b, location...))
}

// appendHost appends an address as it stands in a URL.
func appendHost(b []byte, a netip.Addr) []byte {
	if a = a.Unmap(); a.Is6() {
		return append(a.WithZone("").AppendTo(append(b, '[')), ']')
	}
	return a.AppendTo(b)
}

// xaccel is what an X-Accel-Redirect header leads to.
func (r *request) xaccel(to string) outcome {
	if strings.HasPrefix(to, "@") {
		return r.led(named, 0, to, "")
	}
	uri, args, ok := unescapeTarget(to)
	if !ok {
		return fail(404)
	}
	r.becomeGet()
	return r.led(redirected, 0, uri, args)
}

// unescapeTarget reads a path that a backend sent: escapes are decoded, and it must not lead upwards.
func unescapeTarget(to string) (uri, args string, ok bool) {
	if to == "" || to[0] == '?' || strings.IndexByte(to, 0) >= 0 {
		return "", "", false
	}
	uri, args, _ = strings.Cut(to, "?")
	if strings.IndexByte(uri, '%') >= 0 {
		decoded, ok := decode([]byte(uri))
		if !ok {
			return "", "", false
		}
		uri = string(decoded)
	}
	for segment := range strings.SplitSeq(uri, "/") {
		if segment == ".." {
			return "", "", false
		}
	}
	return uri, args, true
}

// redirect begins again with another path, as if the client had asked for it, but in the same server and to the same
// account of redirects.
func (r *request) redirect(uri, args string) outcome {
	if r.changes--; r.changes == 0 {
		return fail(500)
	}
	if r.trace != nil {
		r.step("redirect", uri, nil)
	}
	r.uri, r.args, r.whole = uri, args, false
	r.location, r.conf = nil, r.server.set
	r.internal, r.stayed = true, false
	return outcome{what: onward}
}

// enterNamed goes on in a named location with path, arguments and method as they are.
func (r *request) enterNamed(name string) outcome {
	if r.changes--; r.changes == 0 {
		return fail(500)
	}
	loc := r.server.named[name]
	if loc == nil || r.uri == "" {
		return fail(500)
	}
	r.internal, r.changed = true, false
	if r.trace != nil {
		r.step("named", name, loc.node)
	}
	r.settle(loc)
	return outcome{what: onward}
}
