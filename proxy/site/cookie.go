package site

import (
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/script"
)

// cookieRewrite is a proxy_cookie_domain or proxy_cookie_path: an attribute that is, or begins with, from.
type cookieRewrite struct {
	pattern *script.Regex[*request]
	from    *template
	to      *template
}

// cookieFlags is a proxy_cookie_flags: what is set and taken away from cookies of that name.
type cookieFlags struct {
	pattern *script.Regex[*request]
	name    *template
	flags   []*template
}

// cookieSettings are the rewrites of Set-Cookie in force.
type cookieSettings struct {
	domains []cookieRewrite
	paths   []cookieRewrite
	flags   []cookieFlags
}

func (c *cookieSettings) empty() bool { return len(c.domains)+len(c.paths)+len(c.flags) == 0 }

func cookieSetter(of func(*cookieSettings) *[]cookieRewrite) setter {
	return func(l *level, n *topology.Node) {
		list := of(&l.settings().proxy.cookies)
		if l.first(n.Name) {
			*list = nil
		}
		if len(n.Args) == 1 && n.Args[0] == "off" {
			*list = nil
			return
		}
		if !l.args(n, 2, 2) {
			return
		}
		w := cookieRewrite{to: l.template(n, n.Args[1])}
		var ok bool
		if w.pattern, w.from, ok = l.pattern(n, n.Args[0]); ok {
			*list = append(*list, w)
		}
	}
}

const cookieFlagsAllowed = "secure, httponly, samesite=strict|lax|none, nosecure, nohttponly, nosamesite"

func setCookieFlags(l *level, n *topology.Node) {
	c := &l.settings().proxy.cookies
	if l.first(n.Name) {
		c.flags = nil
	}
	if len(n.Args) == 1 && n.Args[0] == "off" {
		c.flags = nil
		return
	}
	if !l.args(n, 2, -1) {
		return
	}
	var f cookieFlags
	var ok bool
	if f.pattern, f.name, ok = l.pattern(n, n.Args[0]); !ok {
		return
	}
	for _, word := range n.Args[1:] {
		if flagOf(word) == noFlag && !strings.Contains(word, "$") {
			l.problem(n, quote(word), cookieFlagsAllowed)
			continue
		}
		f.flags = append(f.flags, l.template(n, word))
	}
	c.flags = append(c.flags, f)
}

type cookieFlag uint8

const (
	noFlag cookieFlag = iota
	flagSecure
	flagHTTPOnly
	flagStrict
	flagLax
	flagNone
	flagNoSecure
	flagNoHTTPOnly
	flagNoSameSite
)

var cookieFlagWords = map[string]cookieFlag{
	"secure": flagSecure, "httponly": flagHTTPOnly, "samesite=strict": flagStrict, "samesite=lax": flagLax, "samesite=none": flagNone,
	"nosecure": flagNoSecure, "nohttponly": flagNoHTTPOnly, "nosamesite": flagNoSameSite,
}

func flagOf(word string) cookieFlag { return cookieFlagWords[strings.ToLower(word)] }

// attribute is one part of a Set-Cookie between semicolons.
type attribute struct {
	key, value string
	bare       bool // without =
}

func parseCookie(value string) []attribute {
	var out []attribute
	for part := range strings.SplitSeq(value, ";") {
		key, v, found := strings.Cut(part, "=")
		out = append(out, attribute{strings.TrimSpace(key), strings.TrimSpace(v), !found})
	}
	return out
}

func cookieText(attributes []attribute) []byte {
	var b []byte
	for i, a := range attributes {
		if i > 0 {
			b = append(b, ';')
		}
		if a.key == "" && a.bare {
			continue
		}
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, a.key...)
		if !a.bare {
			b = append(append(b, '='), a.value...)
		}
	}
	return b
}

// rewriteCookie is what becomes of a Set-Cookie field.
func (r *request) rewriteCookie(value []byte) []byte {
	c := &r.conf.way().cookies
	if c.empty() {
		return value
	}
	attributes := parseCookie(string(value))
	if attributes[0].key == "" {
		return value
	}
	changed := false
	for i := range attributes[1:] {
		a := &attributes[1+i]
		switch {
		case strings.EqualFold(a.key, "domain") && !a.bare:
			changed = r.rewriteAttribute(a, c.domains, rewriteDomain) || changed
		case strings.EqualFold(a.key, "path") && !a.bare:
			changed = r.rewriteAttribute(a, c.paths, rewritePath) || changed
		}
	}
	attributes, flagged := r.flagCookie(attributes, c.flags)
	if !changed && !flagged {
		return value
	}
	return singleLineBytes(cookieText(attributes))
}

func (r *request) rewriteAttribute(a *attribute, list []cookieRewrite, plain func(value, from, to string) (string, bool)) bool {
	for i := range list {
		w := &list[i]
		if w.pattern != nil {
			if w.pattern.Match(r, a.value) {
				a.value = w.to.Value(r)
				return true
			}
			continue
		}
		if v, ok := plain(a.value, w.from.Value(r), w.to.Value(r)); ok {
			a.value = v
			return true
		}
	}
	return false
}

// rewriteDomain compares whole names, without a dot that may begin them; the value's own stays.
func rewriteDomain(value, from, to string) (string, bool) {
	name, dotted := strings.CutPrefix(value, ".")
	if !strings.EqualFold(name, strings.TrimPrefix(from, ".")) {
		return "", false
	}
	if to = strings.TrimPrefix(to, "."); dotted {
		to = "." + to
	}
	return to, true
}

func rewritePath(value, from, to string) (string, bool) {
	if rest, ok := strings.CutPrefix(value, from); ok {
		return to + rest, true
	}
	return "", false
}

// flagCookie applies the first line that takes the cookie's name.
func (r *request) flagCookie(attributes []attribute, list []cookieFlags) ([]attribute, bool) {
	for i := range list {
		f := &list[i]
		if f.pattern != nil {
			if !f.pattern.Match(r, attributes[0].key) {
				continue
			}
		} else if f.name.Value(r) != attributes[0].key {
			continue
		}
		for _, t := range f.flags {
			attributes = setFlag(attributes, flagOf(t.Value(r)))
		}
		return attributes, true
	}
	return attributes, false
}

func setFlag(attributes []attribute, f cookieFlag) []attribute {
	switch f {
	case flagSecure:
		return withAttribute(attributes, attribute{key: "Secure", bare: true})
	case flagHTTPOnly:
		return withAttribute(attributes, attribute{key: "HttpOnly", bare: true})
	case flagStrict, flagLax, flagNone:
		return withAttribute(attributes, attribute{key: "SameSite", value: [...]string{"Strict", "Lax", "None"}[f-flagStrict]})
	case flagNoSecure:
		return withoutAttribute(attributes, "secure")
	case flagNoHTTPOnly:
		return withoutAttribute(attributes, "httponly")
	case flagNoSameSite:
		return withoutAttribute(attributes, "samesite")
	}
	return attributes
}

func withAttribute(attributes []attribute, a attribute) []attribute {
	for i := range attributes[1:] {
		if strings.EqualFold(attributes[1+i].key, a.key) {
			attributes[1+i] = a
			return attributes
		}
	}
	return append(attributes, a)
}

func withoutAttribute(attributes []attribute, key string) []attribute {
	kept := attributes[:1]
	for _, a := range attributes[1:] {
		if !strings.EqualFold(a.key, key) {
			kept = append(kept, a)
		}
	}
	return kept
}

// cookieIn finds a cookie in a list of name=value pairs.
func cookieIn(list, name, sep string) (string, bool) {
	for pair := range strings.SplitSeq(list, sep) {
		key, value, found := strings.Cut(pair, "=")
		if found && strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
