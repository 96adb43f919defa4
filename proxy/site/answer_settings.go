package site

import (
	"slices"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// answerSettings is what changes answers on their way to the client, whoever made them.
type answerSettings struct {
	headers      []addedHeader
	expires      *expiry // nil: off
	charset      *charset
	unchunked    bool // chunked_transfer_encoding off
	gzip         gzipSettings
	charsetTypes nameSet
}

func (a *answerSettings) defaults() {
	*a = answerSettings{
		charsetTypes: newNameSet("text/html", "text/xml", "text/plain", "text/vnd.wap.wml", "application/javascript", "application/rss+xml"),
		gzip:         defaultGzip(),
	}
}

// changes tells whether there is anything to do to a head.
func (a *answerSettings) changes() bool {
	return len(a.headers) > 0 || a.expires != nil || a.charset != nil || a.gzip.on || a.unchunked
}

var answerSetters = map[string]setter{
	"add_header":                setAddHeader,
	"expires":                   setExpires,
	"charset":                   setCharset,
	"charset_types":             typesSetter(func(s *settings) *nameSet { return &s.answer.charsetTypes }),
	"gzip":                      onOff(func(s *settings) *bool { return &s.answer.gzip.on }),
	"gzip_types":                typesSetter(func(s *settings) *nameSet { return &s.answer.gzip.types }),
	"gzip_min_length":           setGzipMinLength,
	"gzip_comp_level":           setGzipLevel,
	"gzip_proxied":              setGzipProxied,
	"gzip_vary":                 onOff(func(s *settings) *bool { return &s.answer.gzip.vary }),
	"gzip_http_version":         setGzipVersion,
	"gzip_disable":              setGzipDisable,
	"chunked_transfer_encoding": setChunked,
	"server_tokens":             unseen("on", "off", "build"), // Server never says more than a name
}

// typesSetter reads media types; text/html is always among them, and * means all.
func typesSetter(of func(*settings) *nameSet) setter {
	return func(l *level, n *topology.Node) {
		if l.args(n, 1, -1) {
			*of(l.settings()) = newNameSet(append(slices.Clone(n.Args), "text/html")...)
		}
	}
}

// takes reports whether a media type, which may have parameters, is in a set of types.
func (s *nameSet) takes(contentType []byte) bool {
	if s.has(bytesOf("*")) {
		return true
	}
	for i, c := range contentType {
		if c == ';' || c == ' ' {
			return s.has(contentType[:i])
		}
	}
	return s.has(contentType)
}

func setChunked(l *level, n *topology.Node) {
	on := true
	if l.once(n) {
		l.flag(n, &on)
		l.settings().answer.unchunked = !on
	}
}

// number reads a directive whose only argument is a number of at least least.
func (l *level) number(n *topology.Node, least int) (int, bool) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return 0, false
	}
	v, err := strconv.Atoi(n.Args[0])
	if err != nil || v < least {
		l.problem(n, quote(n.Args[0]), "a number, at least "+strconv.Itoa(least))
		return 0, false
	}
	return v, true
}

// duration reads a directive whose only argument is a time.
func (l *level) duration(n *topology.Node, to *time.Duration) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	d, err := topology.ParseTime(n.Args[0])
	if err != nil {
		l.problem(n, err.Error(), "a time such as 60s or 500ms")
		return
	}
	*to = d
}

// size reads a directive whose only argument is a number of bytes.
func (l *level) size(n *topology.Node, to *int64) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	v, err := topology.ParseSize(n.Args[0])
	if err != nil {
		l.problem(n, err.Error(), "a size such as 512, 8k or 1m")
		return
	}
	*to = int64(v)
}

func times(of func(*settings) *time.Duration) setter {
	return func(l *level, n *topology.Node) { l.duration(n, of(l.settings())) }
}

func sizes(of func(*settings) *int64) setter {
	return func(l *level, n *topology.Node) { l.size(n, of(l.settings())) }
}
