package site

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// target is where a proxy_pass leads.
type target struct {
	text *template // with variables; nil: the rest is known
	origin
	upstream string // as Env.Upstream knows it
	part     string // the URI part, empty without one
	url      string // without the URI part's arguments: what proxy_redirect's default looks for
	name     int    // length of the location's name that part stands for; -1: part is the whole target

	redirectFrom, redirectTo string // of proxy_redirect's default; empty: there is none

	grpc bool // of grpc_pass
	node *topology.Node
}

const proxyPassAllowed = "http://NAME[:PORT][/URI], https://…, or a text with variables that gives one"

func setProxyPass(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	l.passTo(n, &target{node: n})
}

// passTo reads where proxy_pass or grpc_pass leads.
func (l *level) passTo(n *topology.Node, t *target) {
	set := l.settings()
	set.handler, set.byGRPC = (*request).proxy, t.grpc
	if l.location != nil && l.kind == inLocation && strings.HasSuffix(l.location.name, "/") {
		l.location.autoRedirect = true
	}
	text := n.Args[0]
	if strings.Contains(text, "$") {
		t.text = l.template(n, text)
	} else if !l.constantTarget(n, t, text) {
		return
	}
	set.way().target = t
}

// constantTarget reads a target without variables.
func (l *level) constantTarget(n *topology.Node, t *target, text string) bool {
	authority, ok := "", false
	if t.scheme, authority, t.part, ok = t.cut(text); !ok {
		l.problem(n, quote(text), t.allowed())
		return false
	}
	if strings.HasPrefix(authority, "unix:") {
		l.problem(n, "unix sockets are not reached", t.allowed())
		return false
	}
	host, port, ok := cutAuthority(authority)
	if !ok {
		l.problem(n, "host "+quote(authority), t.allowed())
		return false
	}
	if t.part != "" && !l.takesPart() {
		l.problem(n, "a URI part can't stand in a location with a regular expression or a name, in if or in limit_except",
			"the target without "+quote(t.part)+"; or rewrite … break before it")
		return false
	}
	t.set(host, port)
	t.url = text
	t.name = len(l.locationName())
	if l.declared(host) {
		if port != "" {
			l.problem(n, "upstream "+quote(host)+" is declared and can't have a port", text[:strings.LastIndexByte(text, ':')])
			return false
		}
		t.upstream = host
		return true
	}
	t.upstream = host + ":" + t.port // an upstream of its own
	l.addHost(t.upstream, n)
	return true
}

// set fills in what host and port say.
func (t *origin) set(host, port string) {
	t.host, t.port = host, port
	usual := "80"
	if t.scheme == "https" {
		usual = "443"
	}
	if port == "" || port == usual {
		t.port = usual
	} else {
		t.host = host + ":" + port
	}
}

// takesPart: where there is a fixed text that the part can stand for.
func (l *level) takesPart() bool {
	return l.kind == inLocation && l.location != nil && l.location.form != formRegex && l.location.form != formNamed && l.node.Name == "location"
}

func (l *level) locationName() string {
	if l.location == nil {
		return ""
	}
	return l.location.name
}

func (l *level) declared(name string) bool {
	return l.options.Upstreams != nil && l.options.Upstreams(name)
}

// addHost notes a target that is an upstream of its own, and where it was named first.
func (c *compiler) addHost(host string, n *topology.Node) {
	if c.site.hostAt[host] != nil {
		return
	}
	if c.site.hostAt == nil {
		c.site.hostAt = map[string]*topology.Node{}
	}
	c.site.hostAt[host] = n
	c.site.hosts = append(c.site.hosts, host)
}

// settleProxy completes what a level says of proxying, when all of its own directives were read. Levels inside begin with
// the result.
func (l *level) settleProxy() {
	p := l.settings().way()
	t := p.target
	if t == nil {
		return
	}
	p.wire.Scheme = t.scheme
	p.wire.HeadMax = int(max(p.bufferSize, 4<<10)) // in nginx one buffer holds a whole head
	p.settleHidden()
	p.plan = l.planOutgoing(t.node, p)
	if t.text == nil && !t.grpc {
		t.redirectFrom, t.redirectTo = standardRedirect(t, l.locationName())
	}
	l.settleSSL(p)
}

// cutURL takes a target apart; part begins with a slash or is empty.
func cutURL(text string) (scheme, authority, part string, ok bool) {
	for _, s := range [...]string{"http", "https"} {
		if len(text) > len(s)+3 && strings.EqualFold(text[:len(s)], s) && text[len(s):len(s)+3] == "://" {
			scheme, text, ok = s, text[len(s)+3:], true
			break
		}
	}
	if !ok {
		return "", "", "", false
	}
	if i := strings.IndexAny(text, "/?"); i >= 0 {
		if authority, part = text[:i], text[i:]; part[0] == '?' {
			part = "/" + part
		}
		return scheme, authority, part, authority != ""
	}
	return scheme, text, "", text != ""
}

// cutAuthority takes a host and its port apart; port is empty without one.
func cutAuthority(text string) (host, port string, ok bool) {
	host = text
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return "", "", false
		}
		if _, err := netip.ParseAddr(text[1:end]); err != nil {
			return "", "", false
		}
		if host, port = text[:end+1], text[end+1:]; port == "" {
			return host, "", true
		}
		if port[0] != ':' {
			return "", "", false
		}
		port = port[1:]
	} else if i := strings.IndexByte(text, ':'); i >= 0 {
		host, port = text[:i], text[i+1:]
	} else {
		return host, "", host != ""
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", "", false
	}
	return host, port, host != ""
}
