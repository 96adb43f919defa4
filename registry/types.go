package registry

import (
	"encoding/json"
	"errors"
	"time"
)

// Status is what an instance says about itself.
type Status string

// The statuses a beat can carry.
const (
	StatusUp       Status = "up"       // takes traffic
	StatusDraining Status = "draining" // keeps what is pinned to it, gets nothing new
	StatusLeaving  Status = "leaving"  // the last word of an incarnation
)

// Liveness is what the registry holds of an instance.
type Liveness string

// The livenesses of an instance. Live and Unproven instances are routed to, the others are not.
const (
	Live       Liveness = "live"       // beats arrive
	Unproven   Liveness = "unproven"   // overdue together with too many others to be believed dead: kept in the topology
	Stale      Liveness = "stale"      // fell silent for longer than its limit
	Left       Liveness = "left"       // said goodbye
	Superseded Liveness = "superseded" // another instance owns its address now
)

// Routable reports whether instances of this liveness belong in the topology.
func (l Liveness) Routable() bool { return l == Live || l == Unproven }

// Attrs is what routing is built from. A change of any of these raises the registry revision.
type Attrs struct {
	Scheme      string            `json:"scheme"` // http or https
	IP          string            `json:"ip"`     // canonical text of netip.Addr, without brackets
	Port        int               `json:"port"`
	URL         string            `json:"url,omitempty"` // path that the service serves, such as /orders/; empty: no default route
	Weight      int               `json:"weight"`        // >= 1
	MaxConns    int               `json:"max_conns"`     // 0: no limit
	MaxFails    int               `json:"max_fails"`
	FailTimeout time.Duration     `json:"fail_timeout"`
	SlowStart   time.Duration     `json:"slow_start"` // 0: none
	Zone        string            `json:"zone,omitempty"`
	Version     string            `json:"version,omitempty"`
	Tags        []string          `json:"tags,omitempty"` // sorted, distinct
	Meta        map[string]string `json:"meta,omitempty"`
}

// Load is what the sender knows of its own load; zero means unknown.
type Load struct {
	InFlight  int     `json:"in_flight"`
	RPS       float64 `json:"rps"`
	LatencyMS float64 `json:"latency_ms"`
	CPU       float64 `json:"cpu"`    // share of the machine, 0 to 1
	Memory    int64   `json:"memory"` // bytes
}

// Sighting is one valid beat as the registry takes it. Times are Unix µs.
type Sighting struct {
	Service, ID string
	Incarnation int64 // 0: the sender gave none, so the order in the log counts
	Seq         int64
	SentAt      int64 // sender's clock, 0 when absent; only ever shown, as skew
	ReceivedAt  int64 // listener's clock, for the skew figure and for people; never judged by
	Status      Status
	Attrs       Attrs
	Load        Load
	Interval    time.Duration   // how often the sender promises to beat
	StaleAfter  time.Duration   // stream time without a beat after which the instance is stale
	Report      json.RawMessage // what an agent (service upstrand-…) says of its topology; never raises the revision
}

// Pulse is the tick that a partition's owner writes into the partition (DESIGN: stream clock).
type Pulse struct {
	Session string
	N       int64
	Elapsed time.Duration // monotonic time of the owner since pulse N-1
}

// Record is one readable record of the heartbeat topic, in its place in the log. Exactly one of the pointers is set.
type Record struct {
	Offset   int64
	Sighting *Sighting
	Pulse    *Pulse
}

// Rejected is a record that could not be used. It is kept, bounded, for operators to read.
type Rejected struct {
	Offset int64
	Key    string
	Reason string // bounded code
	Detail string
	Value  []byte // cut to a few KiB
	At     int64  // Unix µs, listener's clock
}

// Batch is a run of one partition's log: the offsets From up to, not including, Next.
type Batch struct {
	From, Next int64
	LogEnd     int64 // end of the log as the fetch saw it
	Records    []Record
	Rejected   []Rejected
	// CaughtUp says that Next has reached LogEnd. Only then is anyone judged, so a backlog is applied first.
	CaughtUp bool
}

// Result is what applying a batch did.
type Result struct {
	// Applied counts the sightings that moved an instance forward. One that beats into two partitions at once may be counted
	// where its row, which has the last word, knew of a newer beat.
	Applied  int
	Ignored  map[string]int // sightings that did not, by reason: replayed, lower_incarnation, left, address_taken, unstorable
	Joined   int            // instances new or revived
	Stale    int
	Unproven int // instances that the guard holds now, of this partition
	Revision int64
	Clock    time.Duration
}

// Errors a caller decides on.
var (
	// ErrFenced: somebody else owns the partition or the lease now; drop the work and read the state again.
	ErrFenced = errors.New("fenced: another owner took over")
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("not found")
)

// Instance is a row of the registry with its hot part.
type Instance struct {
	DenseID     int64 `json:"dense_id"` // order of first appearance; ties of balancing go by it
	Service     string
	ID          string
	Incarnation int64
	Status      Status
	Liveness    Liveness
	Cause       string // why it got the liveness and status it has
	Attrs       Attrs
	Interval    time.Duration
	StaleAfter  time.Duration
	CreatedAt   int64
	ChangedAt   int64
	Revision    int64 // of the last change
}

// Service is a known service, with or without instances.
type Service struct {
	Name      string
	CreatedAt int64
	EmptiedAt int64 // Unix µs since when it has had no routable instance; 0: it has some
	Revision  int64
}

// RouteClaim says which service a URL path belongs to. First come, first served, until released.
type RouteClaim struct {
	Path      string
	Service   string
	ClaimedAt int64
	Revision  int64
}

// Snapshot is all that the topology is built from, of one moment (Revision).
type Snapshot struct {
	Revision  int64
	Instances []Instance // ordered by DenseID; from Store.Snapshot the routable ones, from Store.Changes all that changed
	Services  []Service
	Claims    []RouteClaim
	// Declared is what operators declared. From Store.Changes it is nil when that did not change.
	Declared *Declaration
	// RemovedServices and RemovedClaims are only set by Store.Changes.
	RemovedServices []string
	RemovedClaims   []string
}

// Lease is a leadership over a name. Epochs only go up.
type Lease struct {
	Name, Holder string
	Epoch        int64
	TTL          time.Duration
}

// Version is one published topology version.
type Version struct {
	Version   int64
	Epoch     int64
	Digest    string // hex
	Records   int    // live records
	Changed   int    // records written or removed by this version
	Cause     string // what led to it, for people: "orders/a7 joined", …
	Revision  int64  // registry revision it was built from
	CreatedAt int64
}

// TopologyRecord is one keyed record that a version wrote; Value nil is a tombstone.
type TopologyRecord struct {
	Key   string
	Value []byte
}

// Agent is a proxy's own report, as its beats carry it, with the liveness of the instance it is.
type Agent struct {
	Instance   Instance
	Report     json.RawMessage
	ReceivedAt int64
}

// Event is one change of an instance or of operator state.
type Event struct {
	Seq      int64 // increasing
	At       int64 // Unix µs
	Kind     string
	Service  string
	ID       string // instance id, empty when the event is about more than one
	Actor    string // listener owner, confgen leader, or who asked
	Cause    string
	Detail   json.RawMessage
	Revision int64
}

// StreamState is a partition's clock and position.
type StreamState struct {
	Part       int32
	NextOffset int64
	LogEnd     int64
	Clock      time.Duration
	Owner      string
	UpdatedAt  int64
}
