package topology

import (
	"slices"
	"strings"
	"time"
)

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
	instances := x.run.config.instances(d[1])
	if x.group.Peers == nil {
		x.group.Peers = make([]Peer, 0, len(instances))
	}
	for i := range instances {
		if want.matches(&instances[i]) {
			x.addEntry(serverEntry{text: instances[i].Addr}, instances[i].peer(d[1]))
		}
	}
	return ""
}

// filter narrows a discover; nil matches any.
type filter struct {
	zone, version *string
	tags          []string
}

const (
	unknownFilter = "unknown parameter "
	filters       = "; want zone=NAME, version=TEXT, tag=TEXT"
)

func readFilter(args []string) (filter, string) {
	var f filter
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		switch {
		case !ok:
			return f, unknownFilter + arg + filters
		case name == "zone" && f.zone == nil:
			f.zone = &value
		case name == "version" && f.version == nil:
			f.version = &value
		case name == "tag":
			f.tags = append(f.tags, value)
		case name == "zone" || name == "version":
			return f, "parameter " + name + " twice"
		default:
			return f, unknownFilter + name + filters
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
		Text:        in.Addr,
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
