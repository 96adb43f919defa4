package topology

import (
	"slices"
	"strings"
	"time"
)

// notBuilt is the reason for directives that nginx knows and this version does not carry out.
const notBuilt = "not built yet"

func expandUpstream(c *Config, u Upstream) (*Group, []Problem) {
	x := &upstreamExpansion{config: c, group: &Group{Name: u.Name, Origin: u.Origin}}
	if len(u.Directives) > 1 { // one line has no equals: ids are distinct
		x.ordinals = map[PeerKey]int{}
	}
	for _, d := range u.Directives {
		var reason string
		switch d[0] {
		case "discover":
			reason = x.discover(d)
		case "server":
			reason = x.server(d)
		default:
			reason = notBuilt
		}
		if reason != "" {
			x.problems = append(x.problems, Problem{Where: "upstream " + u.Name, Directive: d, Reason: reason})
		}
	}
	x.slowStart()
	return x.group, x.problems
}

// slowStart says once for the upstream that slow_start is carried and not acted on.
func (x *upstreamExpansion) slowStart() {
	if slices.ContainsFunc(x.group.Peers, func(p Peer) bool { return p.SlowStart > 0 }) {
		x.problems = append(x.problems, Problem{Where: "upstream " + x.group.Name,
			Reason: "slow_start: " + notBuilt + "; a server that joins takes its full share at once"})
	}
}

type upstreamExpansion struct {
	config   *Config
	group    *Group
	ordinals map[PeerKey]int // next ordinal of a key without one; nil: there are no equals
	problems []Problem
}

// add appends a peer and numbers it among its equals.
func (x *upstreamExpansion) add(p Peer) {
	p.Key.Upstream, p.Key.Backup = x.group.Name, p.Backup
	if x.ordinals != nil {
		n := x.ordinals[p.Key]
		x.ordinals[p.Key] = n + 1
		p.Key.Ordinal = n
	}
	x.group.Peers = append(x.group.Peers, p)
}

// discover stands for the live instances of a service: discover SERVICE [zone=…] [version=…] [tag=…]. Several tags must
// all be there. The result is why the line can't be used, empty when it can.
func (x *upstreamExpansion) discover(d Directive) string {
	if len(d) < 2 || strings.Contains(d[1], "=") {
		return "want discover SERVICE [zone=…] [version=…] [tag=…]"
	}
	want, reason := readFilter(d[2:])
	if reason != "" {
		return reason
	}
	instances := x.config.instances(d[1])
	if x.group.Peers == nil {
		x.group.Peers = make([]Peer, 0, len(instances))
	}
	for i := range instances {
		if want.matches(&instances[i]) {
			x.add(instances[i].peer(d[1]))
		}
	}
	return ""
}

// filter narrows a discover; nil matches any.
type filter struct {
	zone, version *string
	tags          []string
}

func readFilter(args []string) (filter, string) {
	var f filter
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		switch {
		case !ok:
			return f, "unknown parameter " + arg
		case name == "zone" && f.zone == nil:
			f.zone = &value
		case name == "version" && f.version == nil:
			f.version = &value
		case name == "tag":
			f.tags = append(f.tags, value)
		case name == "zone" || name == "version":
			return f, "parameter " + name + " twice"
		default:
			return f, "unknown parameter " + name
		}
	}
	return f, ""
}

func (f filter) matches(in *Instance) bool {
	if f.zone != nil && *f.zone != in.Zone {
		return false
	}
	if f.version != nil && *f.version != in.Version {
		return false
	}
	for _, tag := range f.tags {
		if !slices.Contains(in.Tags, tag) {
			return false
		}
	}
	return true
}

// peer fills in the defaults.
func (in *Instance) peer(service string) Peer {
	p := Peer{
		Key:         PeerKey{Server: service + "/" + in.ID},
		Service:     service,
		ID:          in.ID,
		Addr:        in.Addr,
		Scheme:      in.Scheme,
		Weight:      max(in.Weight, 1),
		MaxFails:    DefaultMaxFails,
		FailTimeout: time.Duration(in.FailTimeout),
		MaxConns:    in.MaxConns,
		SlowStart:   time.Duration(in.SlowStart),
		Drain:       in.Drain,
		Unproven:    in.Unproven,
		Incarnation: in.Incarnation,
		Order:       in.Order,
		Zone:        in.Zone,
		Version:     in.Version,
	}
	if p.Scheme == "" {
		p.Scheme = "http"
	}
	if in.MaxFails != nil {
		p.MaxFails = *in.MaxFails
	} else if in.FailTimeout == 0 {
		p.FailTimeout = DefaultFailTimeout
	}
	return p
}
