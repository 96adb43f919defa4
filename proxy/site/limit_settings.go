package site

import (
	"fmt"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// limitSettings are the limit_req and limit_conn lines in force.
type limitSettings struct {
	requests []requestLimit
	conns    []connLimit

	requestsStatus int
	requestsDry    bool
	requestsLevel  string

	connsStatus int
	connsDry    bool
	connsLevel  string
}

func (s *limitSettings) defaults() {
	*s = limitSettings{requestsStatus: 503, connsStatus: 503, requestsLevel: "error", connsLevel: "error"}
}

type requestLimit struct {
	zone         *requestZone
	burst, delay int64 // thousandths of a request
}

type connLimit struct {
	zone *connZone
	most int
}

var limitSetters = map[string]setter{
	"limit_req_zone":       setRequestZone,
	"limit_conn_zone":      setConnZone,
	"limit_req":            setRequestLimit,
	"limit_conn":           setConnLimit,
	"limit_req_status":     statusSetter(func(s *settings) *int { return &s.limit.requestsStatus }),
	"limit_conn_status":    statusSetter(func(s *settings) *int { return &s.limit.connsStatus }),
	"limit_req_dry_run":    onOff(func(s *settings) *bool { return &s.limit.requestsDry }),
	"limit_conn_dry_run":   onOff(func(s *settings) *bool { return &s.limit.connsDry }),
	"limit_req_log_level":  levelSetter(func(s *settings) *string { return &s.limit.requestsLevel }),
	"limit_conn_log_level": levelSetter(func(s *settings) *string { return &s.limit.connsLevel }),
}

func statusSetter(of func(*settings) *int) setter {
	return func(l *level, n *topology.Node) {
		if !l.once(n) || !l.args(n, 1, 1) {
			return
		}
		status, err := topology.ParseNumber(n.Args[0], 400)
		if err != nil || status > 599 {
			l.problem(n, quote(n.Args[0]), "a status from 400 to 599")
			return
		}
		*of(l.settings()) = status
	}
}

func levelSetter(of func(*settings) *string) setter {
	return func(l *level, n *topology.Node) {
		if !l.once(n) || !l.args(n, 1, 1) {
			return
		}
		switch n.Args[0] {
		case "info", "notice", "warn", "error":
			*of(l.settings()) = n.Args[0]
		default:
			l.problem(n, quote(n.Args[0]), "info, notice, warn, error")
		}
	}
}

const (
	allowedRequestLimit = "limit_req zone=NAME [burst=N] [nodelay | delay=N]"
	noDelay             = int64(1) << 62
	mostBurst           = 1 << 30
)

func setRequestLimit(l *level, n *topology.Node) {
	if !l.args(n, 1, 3) {
		return
	}
	set := &l.settings().limit
	if l.first(n.Name) {
		set.requests = nil
	}
	r, name := requestLimit{}, ""
	for _, arg := range n.Args {
		key, value, _ := strings.Cut(arg, "=")
		count, err := topology.ParseNumber(value, 1)
		switch {
		case key == "zone" && value != "":
			name = value
		case arg == "nodelay":
			r.delay = noDelay
		case key == "burst" && err == nil && count <= mostBurst:
			r.burst = int64(count) * 1000
		case key == "delay" && err == nil && count <= mostBurst:
			r.delay = int64(count) * 1000
		default:
			l.problem(n, quote(arg), allowedRequestLimit)
			return
		}
	}
	if name == "" {
		l.problem(n, "lacks zone=", allowedRequestLimit)
		return
	}
	if !l.first("limit_req zone=" + name) {
		l.problem(n, "zone "+quote(name)+" is limited here already", "each zone once in a block")
		return
	}
	r.zone = &requestZone{name: name}
	at := r.zone
	set.requests = append(set.requests[:len(set.requests):len(set.requests)], r)
	l.later = append(l.later, func() {
		if z := l.zones.requests[name]; z != nil {
			*at = *z
		} else {
			l.problem(n, "zone "+quote(name)+" is not defined", "the name of a limit_req_zone")
		}
	})
}

func setConnLimit(l *level, n *topology.Node) {
	if !l.args(n, 2, 2) {
		return
	}
	set := &l.settings().limit
	if l.first(n.Name) {
		set.conns = nil
	}
	name := n.Args[0]
	most, err := topology.ParseNumber(n.Args[1], 1)
	if err != nil || most > 65535 {
		l.problem(n, fmt.Sprintf("%q connections", n.Args[1]), "limit_conn ZONE N with N from 1 to 65535")
		return
	}
	if !l.first("limit_conn " + name) {
		l.problem(n, "zone "+quote(name)+" is limited here already", "each zone once in a block")
		return
	}
	at := &connZone{name: name}
	set.conns = append(set.conns[:len(set.conns):len(set.conns)], connLimit{at, most})
	l.later = append(l.later, func() {
		if z := l.zones.conns[name]; z != nil {
			*at = *z
		} else {
			l.problem(n, "zone "+quote(name)+" is not defined", "the name of a limit_conn_zone")
		}
	})
}
