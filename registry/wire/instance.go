package wire

// Counts is how many instances there are, by what the registry holds of them.
type Counts struct {
	Total      int `json:"total" doc:"All instances the registry still knows, gone ones included."`
	Routable   int `json:"routable" doc:"Those in the topology: live and unproven ones, draining ones included."`
	Draining   int `json:"draining" doc:"Routable ones that take nothing new."`
	Live       int `json:"live" doc:"Beats arrive."`
	Unproven   int `json:"unproven" doc:"Overdue together with too many others to be believed dead; kept in the topology."`
	Stale      int `json:"stale" doc:"Silent for longer than their limit."`
	Left       int `json:"left" doc:"Said goodbye."`
	Superseded int `json:"superseded" doc:"Another instance owns their address now."`
}

// Group is the instances of a service that share a zone or a version.
type Group struct {
	Name     string `json:"name" doc:"The zone or version; empty for instances that name none."`
	Routable int    `json:"routable"`
	Total    int    `json:"total"`
}

// Service is a known service, with or without instances.
type Service struct {
	Name      string       `json:"name" example:"orders"`
	State     string       `json:"state" enum:"serving,draining,empty" doc:"serving: some instance takes traffic; draining: only draining instances are left, so nothing new is served; empty: no routable instance. While it is draining or empty its urls answer 503, in the latter case until they are released."`
	URLs      []string     `json:"urls" doc:"URL paths that the service holds, in order."`
	Refused   []RefusedURL `json:"refused_urls,omitempty" doc:"URL paths that its routable instances ask for and do not get, since another service has them; absent when there are none."`
	Instances Counts       `json:"instances"`
	Zones     []Group      `json:"zones" doc:"In order of the zone's name."`
	Versions  []Group      `json:"versions" doc:"In order of the version's name."`
	CreatedAt Time         `json:"created_at" format:"date-time"`
	EmptiedAt *Time        `json:"emptied_at,omitempty" format:"date-time" doc:"Since when it has had no routable instance; absent while it has one."`
	Revision  int64        `json:"revision" doc:"Registry revision of the last change of the service itself."`
}

// The states of a service.
const (
	ServiceServing  = "serving"
	ServiceDraining = "draining"
	ServiceEmpty    = "empty"
)

// RefusedURL is a URL path that one service asks for and another one has.
type RefusedURL struct {
	Path  string `json:"path" example:"/orders"`
	Owner string `json:"owner" doc:"Service that the path belongs to: the first that asked for it."`
}

// ServiceList is a page of services, by name.
type ServiceList struct {
	Services   []Service `json:"services"`
	NextCursor string    `json:"next_cursor,omitempty" doc:"Give it as cursor to get the next page; absent on the last one."`
}

// Load is what an instance knows of its own load. Zero means unknown.
type Load struct {
	InFlight  int     `json:"in_flight" doc:"Requests being served."`
	RPS       float64 `json:"rps" doc:"Requests per second."`
	LatencyMS float64 `json:"latency_ms"`
	CPU       float64 `json:"cpu" doc:"Share of the machine, 0 to 1."`
	Memory    int64   `json:"memory" doc:"Bytes."`
}

// Instance is one process of a service with what its last beat said.
type Instance struct {
	Service    string      `json:"service" example:"orders"`
	ID         string      `json:"id" example:"a7"`
	Address    string      `json:"address" example:"10.0.0.7:8080" doc:"ip:port, with brackets around an IPv6 address."`
	Scheme     string      `json:"scheme" enum:"http,https"`
	IP         string      `json:"ip"`
	Port       int         `json:"port"`
	URL        string      `json:"url,omitempty" doc:"URL path that it serves."`
	RefusedURL *RefusedURL `json:"refused_url,omitempty" doc:"Present when it is routable and another service has the path of its url: it gets no traffic by that path."`
	Status     string      `json:"status" enum:"up,draining,leaving" doc:"What the instance says of itself."`
	Liveness   string      `json:"liveness" enum:"live,unproven,stale,left,superseded" doc:"What the registry holds of it."`
	Routable   bool        `json:"routable" doc:"Whether it is in the topology: live and unproven instances are, services named upstrand-… never."`
	Cause      string      `json:"cause" doc:"Why it has this status and liveness: the last change."`

	Age         *float64 `json:"age_s,omitempty" doc:"Seconds of its partition's stream clock since its last beat; absent when it is not known. The clock stands still while the pipeline does, so this is no wall time."`
	Limit       float64  `json:"limit_s" doc:"Stale when age_s passes it."`
	UnprovenFor *float64 `json:"unproven_s,omitempty" doc:"Seconds of stream clock since it became unproven; absent when it is not."`

	Partition  *int32   `json:"partition,omitempty" doc:"Partition of the heartbeat topic that its last beat came by."`
	Clock      *float64 `json:"clock_s,omitempty" doc:"Stream clock of that partition at its last beat."`
	LastBeatAt *Time    `json:"last_beat_at,omitempty" format:"date-time" doc:"Wall clock of the listener when it read the last beat; for people, never judged by."`
	SkewMS     *float64 `json:"skew_ms,omitempty" doc:"How far the sender's clock is behind the listener's (negative: ahead), with the way through Kafka in it; absent when beats carry no sent_at."`

	Incarnation int64   `json:"incarnation" doc:"Which start of the process (Unix ms by habit); 0 when beats carry none."`
	Seq         int64   `json:"seq" doc:"Number of the last beat in the incarnation."`
	Interval    float64 `json:"interval_s" doc:"How often it promises to beat."`

	Weight      int               `json:"weight"`
	MaxConns    int               `json:"max_conns" doc:"0: no limit."`
	MaxFails    int               `json:"max_fails"`
	FailTimeout float64           `json:"fail_timeout_s"`
	SlowStart   float64           `json:"slow_start_s"`
	Zone        string            `json:"zone"`
	Version     string            `json:"version"`
	Tags        []string          `json:"tags"`
	Meta        map[string]string `json:"meta,omitempty"`
	Load        *Load             `json:"load,omitempty" doc:"Absent until a beat has been applied."`

	CreatedAt Time  `json:"created_at" format:"date-time" doc:"When the registry first saw it."`
	ChangedAt Time  `json:"changed_at" format:"date-time" doc:"When something that routing is built from last changed."`
	Revision  int64 `json:"revision" doc:"Registry revision of that change."`
	Order     int64 `json:"order" doc:"Order of first appearance; ties of balancing go by it."`
}

// InstanceList is a page of instances, by service and id.
type InstanceList struct {
	Instances  []Instance `json:"instances"`
	NextCursor string     `json:"next_cursor,omitempty" doc:"Give it as cursor to get the next page; absent on the last one."`
}
