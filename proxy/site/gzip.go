package site

import (
	"compress/gzip"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// gzipSettings says which answers are compressed.
type gzipSettings struct {
	on        bool
	vary      bool
	http10    bool // also for HTTP/1.0
	types     nameSet
	minLength int64
	level     int
	proxied   proxiedGzip
	disable   []*regexp.Regexp // of User-Agent
}

func defaultGzip() gzipSettings {
	return gzipSettings{types: newNameSet("text/html"), minLength: 20, level: 1}
}

// proxiedGzip is a set of conditions under which requests that came through a proxy get compressed answers.
type proxiedGzip uint8

const (
	gzipExpired proxiedGzip = 1 << iota
	gzipNoCache
	gzipNoStore
	gzipPrivate
	gzipNoLastModified
	gzipNoETag
	gzipAuth
	gzipAny
)

var gzipProxiedWords = map[string]proxiedGzip{
	"off": 0, "expired": gzipExpired, "no-cache": gzipNoCache, "no-store": gzipNoStore, "private": gzipPrivate,
	"no_last_modified": gzipNoLastModified, "no_etag": gzipNoETag, "auth": gzipAuth, "any": gzipAny,
}

func setGzipMinLength(l *level, n *topology.Node) { l.size(n, &l.settings().answer.gzip.minLength) }

func setGzipLevel(l *level, n *topology.Node) {
	v, ok := l.number(n, 1)
	if ok && v > 9 {
		l.problem(n, quote(n.Args[0]), "1 to 9")
		return
	}
	if ok {
		l.settings().answer.gzip.level = v
	}
}

func setGzipProxied(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, -1) {
		return
	}
	var set proxiedGzip
	for _, word := range n.Args {
		bit, ok := gzipProxiedWords[word]
		if !ok {
			l.problem(n, quote(word), "off, expired, no-cache, no-store, private, no_last_modified, no_etag, auth, any")
		}
		set |= bit
	}
	l.settings().answer.gzip.proxied = set
}

func setGzipVersion(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	switch n.Args[0] {
	case "1.0", "1.1":
		l.settings().answer.gzip.http10 = n.Args[0] == "1.0"
	default:
		l.problem(n, quote(n.Args[0]), "1.0, 1.1")
	}
}

func setGzipDisable(l *level, n *topology.Node) {
	if !l.args(n, 1, -1) {
		return
	}
	g := &l.settings().answer.gzip
	if l.first(n.Name) {
		g.disable = nil
	}
	for _, pattern := range n.Args {
		if pattern == "msie6" {
			pattern = `MSIE [4-6]\.`
		}
		re, err := regexp.Compile("(?i)" + pattern)
		if err != nil {
			l.problem(n, err.Error(), "regular expressions (RE2), msie6")
			return
		}
		g.disable = append(g.disable, re)
	}
}

// compresses decides whether an answer of that head goes out compressed, and adds what the head says of it.
func (r *request) compresses(list *fieldList, status int, length int64) bool {
	g := &r.conf.answer.gzip
	if !g.on || status != 200 && status != 403 && status != 404 || length >= 0 && length < g.minLength ||
		len(list.get("Content-Encoding")) > 0 || !g.types.takes(list.get("Content-Type")) {
		return false
	}
	if g.vary {
		list.add("Vary", []byte("Accept-Encoding"))
	}
	if !r.acceptsGzip(g, *list) {
		return false
	}
	list.add("Content-Encoding", []byte("gzip"))
	list.drop("Content-Length")
	list.drop("Accept-Ranges")
	if i := list.index("ETag"); i >= 0 {
		if tag := textOf((*list)[i].Value); strings.HasPrefix(tag, `"`) {
			(*list)[i].Value = []byte("W/" + tag)
		} else if !strings.HasPrefix(tag, "W/") {
			list.drop("ETag")
		}
	}
	return true
}

func (r *request) acceptsGzip(g *gzipSettings, answer fieldList) bool {
	asked := fieldList(r.in.Fields)
	if !acceptsCoding(textOf(asked.get("Accept-Encoding")), "gzip") || r.in.Proto == "HTTP/1.0" && !g.http10 {
		return false
	}
	agent := textOf(asked.get("User-Agent"))
	for _, re := range g.disable {
		if agent != "" && re.MatchString(agent) {
			return false
		}
	}
	if asked.get("Via") == nil {
		return true
	}
	return g.proxied.allows(asked, answer)
}

// allows decides for a request that came through another proxy, by what the answer says of being cached.
func (p proxiedGzip) allows(asked, answer fieldList) bool {
	switch {
	case p == 0:
		return false
	case p&gzipAny != 0, p&gzipAuth != 0 && asked.get("Authorization") != nil:
		return true
	}
	if expires := answer.get("Expires"); expires != nil {
		if p&gzipExpired == 0 {
			return false
		}
		at, err := time.Parse(httpDate, string(expires))
		date, derr := time.Parse(httpDate, string(answer.get("Date")))
		return err != nil || derr == nil && !at.After(date)
	}
	if control := textOf(answer.get("Cache-Control")); control != "" {
		return p&gzipNoCache != 0 && strings.Contains(control, "no-cache") ||
			p&gzipNoStore != 0 && strings.Contains(control, "no-store") ||
			p&gzipPrivate != 0 && strings.Contains(control, "private")
	}
	return p&gzipNoLastModified != 0 && answer.get("Last-Modified") == nil || p&gzipNoETag != 0 && answer.get("ETag") == nil
}

// acceptsCoding reads an Accept-Encoding field: the coding must be named with a quality above 0. As in nginx, * names
// nothing.
func acceptsCoding(list, coding string) bool {
	for item := range strings.SplitSeq(list, ",") {
		name, params, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			return quality(params) > 0
		}
	}
	return false
}

func quality(params string) float64 {
	key, value, found := strings.Cut(strings.TrimSpace(params), "=")
	if !found || !strings.EqualFold(strings.TrimSpace(key), "q") {
		return 1
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil {
		return 0
	}
	return q
}

// squeezers are compressors by level, of use again.
var squeezers [10]sync.Pool

func squeezer(level int, to io.Writer) *gzip.Writer {
	if z, ok := squeezers[level].Get().(*gzip.Writer); ok {
		z.Reset(to)
		return z
	}
	z, _ := gzip.NewWriterLevel(to, level) // 1 to 9 never fails
	return z
}
