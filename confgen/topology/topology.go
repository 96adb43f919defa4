// Package topology is what is published on topic_upstream_conf and served by proxies: services with their live
// instances, upstreams, upstrands and routes of one version, the keyed records that carry them, and the set digest by
// which an agent knows that it holds all of a version.
//
// It is a leaf: it knows nothing of Kafka, the registry or proxies.
package topology

import "time"

// Config is the content of one version, unexpanded: an upstream names the services it discovers, and each service's
// instances stand once, so that one join rewrites one record.
type Config struct {
	Services  []Service  // sorted by Name
	Upstreams []Upstream // declared ones in their order, then derived ones by name
	Upstrands []Upstrand // likewise
	Routes    []Route    // sorted by Host, Path
}

// Service is the live instances of one service.
type Service struct {
	Name      string     `json:"name"`
	Instances []Instance `json:"instances"` // in the order of the registry's dense key; may be empty
}

// Instance is one live instance, with nginx's server parameters.
type Instance struct {
	ID          string   `json:"id"`
	Order       int64    `json:"order"` // the registry's dense key
	Incarnation int64    `json:"incarnation,omitempty"`
	Scheme      string   `json:"scheme,omitempty"` // empty: http
	Addr        string   `json:"addr"`             // ip:port, [ip6]:port
	Weight      int      `json:"weight,omitempty"` // 0 means 1
	MaxConns    int      `json:"max_conns,omitempty"`
	MaxFails    *int     `json:"max_fails,omitempty"`    // nil means 1
	FailTimeout Duration `json:"fail_timeout,omitempty"` // 0 with nil MaxFails means 10 s; see Instance.Server
	SlowStart   Duration `json:"slow_start,omitempty"`
	Zone        string   `json:"zone,omitempty"`
	Version     string   `json:"version,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Drain       bool     `json:"drain,omitempty"`
	Unproven    bool     `json:"unproven,omitempty"` // held by the mass-eviction guard
}

// Origin tells who made an upstream, upstrand or route.
type Origin string

// The origins. A declared name wins over a derived one.
const (
	Derived  Origin = "derived"
	Declared Origin = "declared"
)

// Upstream is a named group of servers as its nginx directives, in order and unexpanded.
type Upstream struct {
	Name       string      `json:"name"`
	Origin     Origin      `json:"origin"`
	Rank       int         `json:"rank,omitempty"` // place among the declared ones
	Directives []Directive `json:"directives"`
}

// Directive is one line of nginx syntax: its name and its arguments, such as ["discover","orders","zone=a"].
type Directive []string

// Upstrand is an ordered group of upstreams that keep their identity, as its directives.
type Upstrand struct {
	Name       string      `json:"name"`
	Origin     Origin      `json:"origin"`
	Rank       int         `json:"rank,omitempty"`
	Directives []Directive `json:"directives"`
	// OwnZoneFirst is set on derived upstrands: a proxy with a zone Z starts at the upstream NAME@Z, the others being
	// its backup; a proxy without one uses the flat upstream NAME.
	OwnZoneFirst bool `json:"own_zone_first,omitempty"`
}

// Route sends a host and path to an upstream or an upstrand.
type Route struct {
	Host   string `json:"host,omitempty"` // empty: any
	Path   string `json:"path"`           // /x matches /x and /x/… only
	Origin Origin `json:"origin"`
	// Exactly one of the two is set.
	Upstream string `json:"upstream,omitempty"`
	Upstrand string `json:"upstrand,omitempty"`
}

// Topology is a Config with the version it is.
type Topology struct {
	Version int64
	Epoch   int64
	Digest  Digest
	At      time.Time // when it was committed
	Config  *Config
}
