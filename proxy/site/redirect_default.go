package site

import (
	"bytes"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/script"
)

// redirection is a proxy_redirect: an address that begins with from begins with to afterwards. A backend that names
// itself in a Location or Refresh would lead clients around the proxy.
type redirection struct {
	standard bool                    // the one that proxy_pass makes; the rest is empty
	pattern  *script.Regex[*request] // nil: from is a text
	from     *template
	to       *template
}

func setProxyRedirect(l *level, n *topology.Node) {
	if !l.args(n, 1, 2) {
		return
	}
	p := &l.settings().proxy
	if l.first(n.Name) {
		p.redirects = nil
	}
	if len(n.Args) == 1 {
		switch n.Args[0] {
		case "off":
			p.redirects = nil
		case "default":
			p.redirects = append(p.redirects, redirection{standard: true})
		default:
			l.problem(n, quote(n.Args[0]), "off, default, or FROM TO")
		}
		return
	}
	r := redirection{to: l.template(n, n.Args[1])}
	var ok bool
	if r.pattern, r.from, ok = l.pattern(n, n.Args[0]); ok {
		p.redirects = append(p.redirects, r)
	}
}

// pattern reads ~REGEX, ~*REGEX or a text.
func (l *level) pattern(n *topology.Node, text string) (*script.Regex[*request], *template, bool) {
	rest, isRegex := strings.CutPrefix(text, "~")
	if !isRegex {
		return nil, l.template(n, text), true
	}
	rest, fold := strings.CutPrefix(rest, "*")
	re, err := l.script.Regex(rest, fold)
	if err != nil {
		l.problem(n, err.Error(), "a regular expression (RE2)")
		return nil, nil, false
	}
	return re, nil, true
}

// standardRedirect is what `proxy_redirect default` means for a constant proxy_pass: the target's own address becomes the
// location's name.
func standardRedirect(t *target, location string) (from, to string) {
	if t.part == "" {
		return t.url + "/", "/"
	}
	return t.url, location
}

// relocated rewrites an address that a backend gave. It begins at from in the value; false: no line applies.
func (r *request) relocated(value []byte, from int) ([]byte, bool) {
	p := r.conf.way()
	text := textOf(value[from:])
	for i := range p.redirects {
		if out, ok := p.redirects[i].apply(r, value[:from], text); ok {
			return out, true
		}
	}
	return nil, false
}

func (d *redirection) apply(r *request, before []byte, text string) ([]byte, bool) {
	out := append(make([]byte, 0, len(before)+len(text)+32), before...)
	if d.pattern != nil {
		if !d.pattern.Match(r, text) {
			return nil, false
		}
		return singleLineBytes(d.to.Append(out, r)), true
	}
	from := ""
	if t := r.conf.way().target; !d.standard {
		from = d.from.Value(r)
	} else if from = t.redirectFrom; from == "" {
		return nil, false
	}
	rest, ok := strings.CutPrefix(text, from)
	if !ok {
		return nil, false
	}
	if d.standard {
		out = append(out, r.conf.way().target.redirectTo...)
	} else {
		out = d.to.Append(out, r)
	}
	return singleLineBytes(append(out, rest...)), true
}

// rewriteLocation is what becomes of a Location field. What was rewritten to a path becomes a whole address, as our own
// redirects are; what the backend left as a path stays one.
func (r *request) rewriteLocation(value []byte) []byte {
	if out, ok := r.relocated(value, 0); ok {
		return bytesOf(r.absolute(textOf(out)))
	}
	return value
}

// rewriteRefresh changes the address behind url= in a Refresh field.
func (r *request) rewriteRefresh(value []byte) []byte {
	at := bytes.Index(bytes.ToLower(value), []byte("url="))
	if at < 0 {
		return value
	}
	if out, ok := r.relocated(value, at+len("url=")); ok {
		return out
	}
	return value
}

func singleLineBytes(b []byte) []byte { return singleLine(textOf(b)) }
