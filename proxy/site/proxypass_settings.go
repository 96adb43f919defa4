package site

import (
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/forward"
)

// proxySettings is what the proxy_… directives say.
type proxySettings struct {
	target      *target       // of proxy_pass; nil: none
	tls         *peerTLS      // for https whose name, or which at all, the request says; nil: wire is all
	plan        *outgoingPlan // of setHeaders and the version
	method      *template     // nil: the client's
	body        *template     // proxy_set_body; nil: the client's
	ignore      ignored
	passHeaders bool
	passBody    bool
	holdBody    bool // proxy_request_buffering
	ignoreAbort bool
	intercept   bool    // proxy_intercept_errors
	trailers    bool    // proxy_pass_trailers
	hidden      nameSet // of hide and pass
	policy      forward.Policy
	wire        Wire // complete when everything is compiled

	ssl        sslSettings
	setHeaders []outHeader
	hide, pass []string
	redirects  []redirection
	cookies    cookieSettings
	bufferSize int64
}

func (p *proxySettings) defaults() {
	*p = proxySettings{
		wire:        Wire{Connect: time.Minute, Read: time.Minute, Send: time.Minute, Headless: true, NoHost: true},
		policy:      forward.Policy{Next: forward.OnError | forward.OnTimeout},
		passHeaders: true,
		passBody:    true,
		holdBody:    true,
		redirects:   []redirection{{standard: true}},
		bufferSize:  4 << 10,
		ssl:         defaultSSL(),
	}
}

// enterLocation takes out what a location doesn't inherit.
func (p *proxySettings) enterLocation() { p.target = nil }

var proxySetters = merge(map[string]setter{
	"proxy_pass":                  setProxyPass,
	"proxy_method":                setProxyMethod,
	"proxy_http_version":          setProxyVersion,
	"proxy_set_header":            setProxyHeader,
	"proxy_set_body":              setProxyBody,
	"proxy_pass_request_headers":  onOff(func(s *settings) *bool { return &s.proxy.passHeaders }),
	"proxy_pass_request_body":     onOff(func(s *settings) *bool { return &s.proxy.passBody }),
	"proxy_request_buffering":     onOff(func(s *settings) *bool { return &s.proxy.holdBody }),
	"proxy_connect_timeout":       times(func(s *settings) *time.Duration { return &s.proxy.wire.Connect }),
	"proxy_read_timeout":          times(func(s *settings) *time.Duration { return &s.proxy.wire.Read }),
	"proxy_send_timeout":          times(func(s *settings) *time.Duration { return &s.proxy.wire.Send }),
	"proxy_buffering":             unseen("on", "off"),
	"proxy_buffer_size":           sizes(func(s *settings) *int64 { return &s.proxy.bufferSize }),
	"proxy_ignore_client_abort":   onOff(func(s *settings) *bool { return &s.proxy.ignoreAbort }),
	"proxy_intercept_errors":      onOff(func(s *settings) *bool { return &s.proxy.intercept }),
	"proxy_next_upstream":         setNextUpstream,
	"proxy_next_upstream_tries":   setNextTries,
	"proxy_next_upstream_timeout": times(func(s *settings) *time.Duration { return &s.proxy.policy.Within }),
	"proxy_hide_header":           nameList(func(s *settings) *[]string { return &s.proxy.hide }),
	"proxy_pass_header":           nameList(func(s *settings) *[]string { return &s.proxy.pass }),
	"proxy_pass_trailers":         onOff(func(s *settings) *bool { return &s.proxy.trailers }),
	"proxy_ignore_headers":        setIgnoreHeaders,
	"proxy_redirect":              setProxyRedirect,
	"proxy_cookie_domain":         cookieSetter(func(c *cookieSettings) *[]cookieRewrite { return &c.domains }),
	"proxy_cookie_path":           cookieSetter(func(c *cookieSettings) *[]cookieRewrite { return &c.paths }),
	"proxy_cookie_flags":          setCookieFlags,
}, sslSetters)

// unseen accepts a directive with one of these values, of which no answer shows anything: answers go to clients as they
// come either way.
func unseen(values ...string) setter {
	return func(l *level, n *topology.Node) {
		if !l.once(n) || !l.args(n, 1, 1) {
			return
		}
		for _, v := range values {
			if n.Args[0] == v {
				return
			}
		}
		l.problem(n, quote(n.Args[0]), joined(values))
	}
}

// nameList collects names, one in each line; the first line of a level replaces what was inherited.
func nameList(of func(*settings) *[]string) setter {
	return func(l *level, n *topology.Node) {
		if !l.args(n, 1, 1) {
			return
		}
		list := of(l.settings())
		if l.first(n.Name) {
			*list = nil
		}
		*list = append(*list, n.Args[0])
	}
}

func setProxyMethod(l *level, n *topology.Node) {
	if l.once(n) && l.args(n, 1, 1) {
		l.settings().proxy.method = l.template(n, n.Args[0])
	}
}

func setProxyBody(l *level, n *topology.Node) {
	if l.once(n) && l.args(n, 1, 1) {
		l.settings().proxy.body = l.template(n, n.Args[0])
	}
}

func setProxyVersion(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	switch wire := &l.settings().proxy.wire; n.Args[0] {
	case "1.0", "1.1", "2":
		wire.HTTP10, wire.HTTP2 = n.Args[0] == "1.0", n.Args[0] == "2"
	default:
		l.problem(n, quote(n.Args[0]), "1.0, 1.1, 2")
	}
}

func setNextTries(l *level, n *topology.Node) {
	if v, ok := l.number(n, 0); ok {
		l.settings().proxy.policy.Tries = v
	}
}

func setNextUpstream(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, -1) {
		return
	}
	p := &l.settings().proxy.policy
	p.Next, p.NonIdempotent = 0, false
	off := false
	for _, word := range n.Args {
		class, ok := forward.ParseClass(word)
		switch {
		case word == "off":
			off = true
		case word == "non_idempotent":
			p.NonIdempotent = true
		case word == "updating": // of a cache, which there is none of
		case ok:
			p.Next |= class
		default:
			l.problem(n, quote(word), "error, timeout, invalid_header, http_500, http_502, http_503, http_504, http_403, http_404, http_429, non_idempotent, off")
		}
	}
	if off {
		p.Next = 0
	}
}

// ignored are fields of a backend's answer that change nothing here.
type ignored uint16

const (
	ignoreRedirect ignored = 1 << iota
	ignoreCharset
	ignoreOther // those that are about caches, rates and buffers: nothing is done with them anyway
)

var ignoreWords = map[string]ignored{
	"X-Accel-Redirect": ignoreRedirect, "X-Accel-Charset": ignoreCharset, "X-Accel-Expires": ignoreOther, "X-Accel-Limit-Rate": ignoreOther,
	"X-Accel-Buffering": ignoreOther, "Expires": ignoreOther, "Cache-Control": ignoreOther, "Set-Cookie": ignoreOther, "Vary": ignoreOther,
}

func setIgnoreHeaders(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, -1) {
		return
	}
	var set ignored
	for _, word := range n.Args {
		bit := noIgnored
		for name, b := range ignoreWords {
			if sameName(bytesOf(name), word) {
				bit = b
			}
		}
		if bit == noIgnored {
			l.problem(n, quote(word), "X-Accel-Redirect, X-Accel-Expires, X-Accel-Limit-Rate, X-Accel-Buffering, X-Accel-Charset, Expires, Cache-Control, Set-Cookie, Vary")
		}
		set |= bit
	}
	l.settings().proxy.ignore = set
}

const noIgnored ignored = 0

// hiddenByDefault are fields of a backend's answer that don't go on unless proxy_pass_header says so.
var hiddenByDefault = []string{"Date", "Server", "X-Pad", "X-Accel-Expires", "X-Accel-Redirect", "X-Accel-Limit-Rate", "X-Accel-Buffering", "X-Accel-Charset"}

// settleHidden makes the set of what doesn't go on.
func (p *proxySettings) settleHidden() {
	p.hidden = newNameSet(append(append([]string(nil), hiddenByDefault...), p.hide...)...)
	for _, name := range p.pass {
		hiddenByLine := false
		for _, h := range p.hide {
			hiddenByLine = hiddenByLine || sameName(bytesOf(h), name)
		}
		if !hiddenByLine {
			p.hidden.remove(name)
		}
	}
	for _, name := range neverPassed {
		p.hidden.add(name)
	}
}

// neverPassed are the fields of an answer that speak of one connection, or are written anew.
var neverPassed = []string{"Connection", "Keep-Alive", "Transfer-Encoding", "Trailer"}

func joined(words []string) string {
	out := ""
	for i, w := range words {
		if i > 0 {
			out += ", "
		}
		out += w
	}
	return out
}
