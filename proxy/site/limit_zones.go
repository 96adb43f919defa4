package site

import (
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/limit"
)

// requestZone is a limit_req_zone. Zones are known when all is read.
type requestZone struct {
	name  string
	key   *template
	rate  int64 // thousandths of a request per second
	count *limit.Requests
}

type connZone struct {
	name  string
	key   *template
	count *limit.Conns
}

// limitZones are the zones of a configuration, by name.
type limitZones struct {
	requests map[string]*requestZone
	conns    map[string]*connZone
}

// leastZone is nginx's: eight pages.
const leastZone = 32 << 10

// zoneArg reads zone=NAME:SIZE; ok is false after a problem.
func (l *level) zoneArg(n *topology.Node, text string) (name string, size int64, ok bool) {
	name, sizeText, found := strings.Cut(text, ":")
	size, err := topology.ParseSize(sizeText)
	if !found || name == "" || err != nil || size < leastZone {
		l.problem(n, quote("zone="+text), "zone=NAME:SIZE with a size of 32k or more")
		return "", 0, false
	}
	return name, size, true
}

const allowedRequestZone = "limit_req_zone KEY zone=NAME:SIZE rate=Nr/s|Nr/m"

func setRequestZone(l *level, n *topology.Node) {
	if !l.args(n, 3, 3) {
		return
	}
	z := &requestZone{key: l.template(n, n.Args[0])}
	size := int64(0)
	for _, arg := range n.Args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		ok := false
		switch name {
		case "zone":
			if z.name, size, ok = l.zoneArg(n, value); !ok {
				return
			}
		case "rate":
			if z.rate, ok = rateOf(value); !ok {
				l.problem(n, quote(arg), "rate=Nr/s or rate=Nr/m with N from 1 to 1000000")
				return
			}
		default:
			l.problem(n, quote(arg), allowedRequestZone)
			return
		}
	}
	switch {
	case z.name == "" || z.rate == 0:
		l.problem(n, "lacks zone= or rate=", allowedRequestZone)
	case l.zones.requests[z.name] != nil || l.zones.conns[z.name] != nil:
		l.problem(n, "zone "+quote(z.name)+" stands already", "another name")
	default:
		id := limit.ID{Name: z.name, Key: n.Args[0], Size: size}
		z.count = l.options.Zones.Requests(id)
		l.site.requestZones = append(l.site.requestZones, id)
		l.zones.requests[z.name] = z
	}
}

// rateOf is a rate in thousandths of a request per second, cut off as nginx cuts it.
func rateOf(text string) (int64, bool) {
	scale := int64(1)
	count, ok := strings.CutSuffix(text, "r/s")
	if !ok {
		count, ok = strings.CutSuffix(text, "r/m")
		scale = 60
	}
	n, err := topology.ParseNumber(count, 1)
	return int64(n) * 1000 / scale, ok && err == nil && n <= 1_000_000
}

func setConnZone(l *level, n *topology.Node) {
	if !l.args(n, 2, 2) {
		return
	}
	z := &connZone{key: l.template(n, n.Args[0])}
	value, ok := strings.CutPrefix(n.Args[1], "zone=")
	if !ok {
		l.problem(n, quote(n.Args[1]), "limit_conn_zone KEY zone=NAME:SIZE")
		return
	}
	name, size, ok := l.zoneArg(n, value)
	switch {
	case !ok:
	case l.zones.requests[name] != nil || l.zones.conns[name] != nil:
		l.problem(n, "zone "+quote(name)+" stands already", "another name")
	default:
		id := limit.ID{Name: name, Key: n.Args[0], Size: size}
		z.name, z.count = name, l.options.Zones.Conns(id)
		l.site.connZones = append(l.site.connZones, id)
		l.zones.conns[name] = z
	}
}

// LimitZones are the names of the site's zones, of requests and of connections.
func (s *Site) LimitZones() (requests, conns []string) {
	for _, id := range s.requestZones {
		requests = append(requests, id.Name)
	}
	for _, id := range s.connZones {
		conns = append(conns, id.Name)
	}
	return requests, conns
}

// leaveZones lets the zones of the site go.
func (s *Site) leaveZones() {
	for _, id := range s.requestZones {
		s.zones.ReleaseRequests(id)
	}
	for _, id := range s.connZones {
		s.zones.ReleaseConns(id)
	}
	s.requestZones, s.connZones = nil, nil
}
