package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/deploy/wire"
)

// differences is what is wrong with our outcome beside nginx's; none: all is well.
func differences(text string, nginx, ours outcome) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, f := range ours.faults {
		add("written to the client: %s", f)
	}
	switch {
	case nginx.open: // what follows may still come there
		return out
	case ours.open:
		return append(out, "the connection stays open")
	}
	for i, m := range ours.requests {
		if i < len(nginx.requests) && hostless(nginx.requests[i]) {
			continue // one of HTTP/1.0 without Host, and nothing in the configuration says another
		}
		beyond := i >= len(nginx.requests) // nginx closed before it
		for _, f := range m.Faults {
			if beyond && hostless(m) {
				break // likewise, as far as is known
			}
			add("written to the backend: %s", f)
		}
		if beyond {
			if why := stricter(text, m, nginx); why == "" {
				add("forwarded, and refused by nginx: %s", m.Line)
			}
			break // what follows the refused one nginx never saw
		}
		if d := unlike(nginx.requests[i], m); d != "" {
			add("request %d means something else: %s", i, d)
			break
		}
	}
	if n := len(ours.answers); n < len(ours.requests) {
		add("%d answers to %d requests", n, len(ours.requests))
	}
	return out
}

func hostless(m *wire.Message) bool { _, n := m.Get("Host"); return n == 0 }

// unlike tells how two requests differ in what they mean.
func unlike(a, b *wire.Message) string {
	switch {
	case a.Method() != b.Method():
		return fmt.Sprintf("method: nginx %q, we %q", a.Method(), b.Method())
	case a.Target() != b.Target() && !(a.Target() == "/" && b.Target() == "/?"): // nginx forgets the ? of http://host?
		return fmt.Sprintf("target: nginx %q, we %q", a.Target(), b.Target())
	case hostOf(a) != hostOf(b):
		return fmt.Sprintf("host: nginx %q, we %q", hostOf(a), hostOf(b))
	case !bytes.Equal(a.Body, b.Body):
		return fmt.Sprintf("body: nginx %q, we %q", a.Body, b.Body)
	}
	x, y := fieldsOf(a, b), fieldsOf(b, a)
	if !slices.Equal(x, y) {
		return fmt.Sprintf("fields: nginx %q, we %q", x, y)
	}
	return ""
}

// hostOf is without port and in lower case, as $host is; a published route passes on what the client said.
func hostOf(m *wire.Message) string {
	h, _ := m.Get("Host")
	h = strings.ToLower(h)
	if i := strings.LastIndexByte(h, ':'); i > strings.LastIndexByte(h, ']') {
		h = h[:i]
	}
	return strings.TrimSuffix(h, ".") // nginx leaves a point at the end out
}

// fieldsOf is the fields that go from end to end.
func fieldsOf(m, other *wire.Message) (out []string) {
	for _, f := range m.Fields {
		name, value, _ := strings.Cut(f, ":")
		if name = strings.ToLower(name); !passed(name) || dropped(name, m) || dropped(name, other) {
			continue
		}
		out = append(out, name+": "+strings.Trim(value, " \t"))
	}
	slices.Sort(out)
	return out
}
