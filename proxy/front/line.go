package front

import (
	"bytes"

	"github.com/upstrand/upstrand/proxy/syntax"
)

const version = "HTTP/1.1"

// first reads the first line, or passes over an empty one.
func (h *head) first(line []byte) {
	if len(line) == 0 {
		h.start = h.pos
		if h.empty++; h.empty > maxEmpty {
			h.fail(faultEmpty)
		}
		return
	}
	h.lined, h.req.Line = true, line
	i := syntax.Span(line, syntax.Method)
	if i == 0 || i == len(line) || line[i] != ' ' {
		h.fail(faultMethod)
		return
	}
	h.req.Method = line[:i:i]
	rest := line[i+1:]
	i = syntax.Span(rest, syntax.Asked)
	good := i == len(rest) || rest[i] == ' '
	if !good {
		i = bytes.IndexByte(rest, ' ')
	}
	if i <= 0 || i == len(rest) {
		h.fail(faultLine)
		return
	}
	h.req.Target = rest[:i:i]
	h.version(rest[i+1:])
	switch {
	case h.done:
	case !good:
		h.fail(faultTarget)
	default:
		h.form()
	}
}

// version reads HTTP/1.1 and the like. RFC 9110, 2.5: a higher minor version is read as the highest that is known.
func (h *head) version(s []byte) {
	const major, minor = len("HTTP/"), len("HTTP/1.")
	switch {
	case len(s) != len(version) || string(s[:major]) != version[:major] || s[major+1] != '.' ||
		!syntax.Is(s[major], syntax.Digit) || !syntax.Is(s[minor], syntax.Digit):
		h.fail(faultLine)
	case s[major] != '1':
		h.fail(faultVersion)
	case s[minor] > '0':
		h.minor = 1
	}
}

// form looks at the target, of bytes that are allowed there, and makes its origin form.
func (h *head) form() {
	t := h.req.Target
	switch {
	case t[0] == '/':
	case string(h.req.Method) == "CONNECT": // is refused by whoever handles it
	case string(t) == "*":
		if string(h.req.Method) != "OPTIONS" {
			h.fail(faultStar)
		}
	default:
		h.address(t)
	}
}

var root = []byte("/")

// address takes the authority out of a target that a client sent as to a forward proxy.
func (h *head) address(t []byte) {
	const plain, secure = "http://", "https://"
	var rest []byte
	switch {
	case len(t) > len(plain) && schemed(t, plain):
		rest = t[len(plain):]
	case len(t) > len(secure) && schemed(t, secure):
		rest = t[len(secure):]
	default:
		h.fail(faultAddress)
		return
	}
	end := bytes.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	h.absolute, h.req.Authority = true, rest[:end:end]
	if !syntax.IsAuthority(h.req.Authority) {
		h.fail(faultAddress)
		return
	}
	switch rest = rest[end:]; {
	case len(rest) == 0:
		h.req.Target = root
	case rest[0] == '?':
		h.req.Target = append([]byte{'/'}, rest...)
	default:
		h.req.Target = rest
	}
}

func schemed(t []byte, scheme string) bool {
	n := len(scheme) - len("://")
	return syntax.Equal(t[:n], scheme[:n]) && string(t[n:len(scheme)]) == "://"
}
