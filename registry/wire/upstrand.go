package wire

// Where walks of an upstrand begin.
const (
	StartTurn   = "turn"   // each at the next upstream
	StartFirst  = "first"  // each at the first
	StartRandom = "random" // each at any
)

// Upstrand is an upstrand of the newest topology version, with its upstreams. Where the next request of a proxy begins and
// what it has blacklisted is the proxy's own, see its admin address: /debug/upstrands.
type Upstrand struct {
	Name          string              `json:"name" example:"orders"`
	Origin        string              `json:"origin" enum:"derived,declared"`
	OwnZoneFirst  bool                `json:"own_zone_first,omitempty" doc:"A proxy with a zone begins at the upstream of its zone and has the others as backup; one without uses the flat upstream of this name. Members are then as published; give zone to see them as a proxy does."`
	Start         string              `json:"start" enum:"turn,first,random" doc:"Where walks begin: each at the next upstream, at the first, or at any."`
	NextStatuses  []string            `json:"next_upstream_statuses" doc:"Results of an upstream after which the next one is asked."`
	NonIdempotent bool                `json:"non_idempotent,omitempty" doc:"Also requests that a backend answered and that must not be repeated otherwise: POST, LOCK, PATCH."`
	NextTimeout   float64             `json:"next_upstream_timeout_s,omitempty" doc:"After this no other upstream is asked; absent: no limit."`
	Intercepts    []UpstrandIntercept `json:"intercept_statuses,omitempty"`
	Members       []UpstrandMember    `json:"members" doc:"In the order of the lines; a request goes through the normal ones, then the backup."`
	Routes        []string            `json:"routes" doc:"Published routes that lead here, as host and path. Locations of a proxy's own file are not among them."`
	Blacklisted   []Blacklisted       `json:"blacklisted" doc:"What proxies have blacklisted, as their last reports say, as far as it is not over."`
	Problems      []string            `json:"problems,omitempty" doc:"Lines of it that can't be used."`
}

// UpstrandIntercept gives a final status another answer.
type UpstrandIntercept struct {
	Statuses []string `json:"statuses"`
	URI      string   `json:"uri"`
}

// UpstrandMember is an upstream of an upstrand.
type UpstrandMember struct {
	Upstream string         `json:"upstream"`
	Origin   string         `json:"origin" enum:"derived,declared"`
	Backup   bool           `json:"backup,omitempty"`
	Interval float64        `json:"blacklist_interval_s,omitempty" doc:"How long a proxy passes it over after a listed result; absent: it does not."`
	Peers    int            `json:"peers" doc:"Its servers: lines, and live instances. A name that proxies look up counts as one."`
	Usable   int            `json:"usable_peers" doc:"Those that are neither draining nor down."`
	Servers  []UpstrandPeer `json:"servers,omitempty" doc:"Absent in lists."`
}

// UpstrandPeer is a server of a member.
type UpstrandPeer struct {
	Server   string `json:"server" example:"orders/a7" doc:"SERVICE/ID of an instance, or the text of a server line."`
	Addr     string `json:"addr,omitempty" doc:"Absent of a name that proxies look up."`
	Weight   int    `json:"weight"`
	Zone     string `json:"zone,omitempty"`
	Version  string `json:"version,omitempty"`
	Backup   bool   `json:"backup,omitempty" doc:"Within its upstream."`
	Down     bool   `json:"down,omitempty"`
	Draining bool   `json:"draining,omitempty"`
	Unproven bool   `json:"unproven,omitempty" doc:"Overdue together with too many others to be believed dead."`
}

// Blacklisted is an upstream that a proxy passes over for a while.
type Blacklisted struct {
	Agent     string  `json:"agent" example:"upstrand-proxy/edge-1-8080"`
	Upstream  string  `json:"upstream"`
	Until     Time    `json:"until" format:"date-time" doc:"On the proxy's clock."`
	ReportAge float64 `json:"report_age_s" doc:"How old that report is: a reset or a new result since then is in the next one."`
}

// UpstrandList is a page of upstrands, by name.
type UpstrandList struct {
	Upstrands  []Upstrand `json:"upstrands"`
	Version    int64      `json:"topology_version" doc:"Of which they are; 0: none has been published."`
	NextCursor string     `json:"next_cursor,omitempty" doc:"Give it as cursor to get the next page; absent on the last one."`
}

// ReportBlacklisted is the name under which agents report what is blacklisted: a JSON list of [UPSTRAND, UPSTREAM, UNTIL],
// UNTIL being a Unix second.
const ReportBlacklisted = "blacklisted"
