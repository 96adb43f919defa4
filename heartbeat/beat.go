package heartbeat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Limits of a beat. A record that exceeds one is refused; beat.schema.json says the same numbers.
const (
	MaxRecord     = 64 << 10  // bytes of a whole record
	MaxName       = 64        // bytes of service, id, zone, version and of each tag
	MaxURL        = 255       // bytes of url
	MaxTags       = 32        // entries of tags
	MaxMeta       = 32        // entries of meta
	MaxMetaKey    = 64        // bytes of a key of meta
	MaxMetaValue  = 1024      // bytes of a value of meta
	MaxMetaTotal  = 8 << 10   // bytes of all keys and values of meta together
	MaxPort       = 65535     // port, from 1
	MaxWeight     = 65535     // weight, from 1
	MaxConnsLimit = 1_000_000 // max_conns, from 0 (no limit)
	MaxFailsLimit = 1_000_000 // max_fails, from 0 (failures are not counted)
	MaxSerial     = 1<<53 - 1 // incarnation and seq, from 1: what every language's JSON keeps exact
	MaxInFlight   = 1<<31 - 1 // load.in_flight, from 0
	MaxRPS        = 2_000_000 // load.rps, from 0
	MaxLatencyMS  = 2_000_000 // load.latency_ms, from 0
	MaxCPU        = 1000      // resources.cpu, from 0; 1 is the whole machine, and measuring overshoots
	MaxMemory     = MaxSerial // resources.memory in bytes, from 0

	MinInterval    = 100 * time.Millisecond
	MaxInterval    = 5 * time.Minute
	MinStaleAfter  = time.Second // stale_after as a beat may give it
	MaxStaleAfter  = time.Hour
	MinFailTimeout = time.Second // fail_timeout counts whole seconds, as nginx does
	MaxFailTimeout = time.Hour
	MaxSlowStart   = time.Hour
)

// What holds where a beat says nothing.
const (
	DefaultInterval    = 10 * time.Second
	DefaultScheme      = "http"
	DefaultWeight      = 1
	DefaultMaxFails    = 1
	DefaultFailTimeout = 10 * time.Second
	// The stale limit that is derived from the interval is held between these two; one that the beat gives is not.
	MinStaleLimit = 3 * time.Second
	MaxStaleLimit = 5 * time.Minute
)

// AgentPrefix begins the names of services that are parts of Upstrand itself: shown as agents, never routed to.
const AgentPrefix = "upstrand-"

// IsAgent reports whether a service is a part of Upstrand itself.
func IsAgent(service string) bool { return strings.HasPrefix(service, AgentPrefix) }

// Status is what an instance says about itself.
type Status string

// The statuses a beat can carry.
const (
	StatusUp       Status = "up"       // takes traffic
	StatusDraining Status = "draining" // keeps what is pinned to it, gets nothing new
	StatusLeaving  Status = "leaving"  // goodbye: final for its incarnation
)

// Beat is one heartbeat message. The zero value of an optional field means that the sender does not say.
//
// Decode and Canonical return beats in canonical form: one spelling of the address, tags sorted and distinct, sent_at
// in UTC, and the defaults of scheme, status, weight and interval filled in. Beats in canonical form that mean the
// same are equal, and Decode(Encode(b)) gives back b.
type Beat struct {
	// Service and ID say who beats. Service: [a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?; ID: [A-Za-z0-9._:-]{1,64}, stable
	// for one place (a pod name, host:port) and chosen by the sender.
	Service string `json:"service"`
	ID      string `json:"id"`
	// Incarnation is this start of the process (Unix ms at its start) and Seq the number of the beat in it, from 1.
	// Both or neither are given; without them the order in the log counts.
	Incarnation int64 `json:"incarnation,omitempty"`
	Seq         int64 `json:"seq,omitempty"`
	// SentAt is the sender's clock. It is shown as skew and never used to judge anything.
	SentAt time.Time `json:"sent_at,omitzero"`
	// Scheme (http or https), IP and Port say where to reach it. IP has no brackets, no zone and is none at
	// which no instance can be: 0.0.0.0/8, link-local, multicast, reserved. A beat that says leaving may omit all three.
	Scheme string `json:"scheme,omitempty"`
	IP     string `json:"ip,omitempty"`
	Port   int    `json:"port,omitempty"`
	// URL is the path that the service serves, such as /orders/: its default route, in decoded form. Empty: none.
	URL    string `json:"url,omitempty"`
	Status Status `json:"status,omitempty"`
	// Weight to SlowStart are nginx's server parameters; see FailLimits for the defaults of the middle two.
	Weight      int      `json:"weight,omitempty"`
	MaxConns    int      `json:"max_conns,omitempty"` // 0: no limit
	MaxFails    *int     `json:"max_fails,omitempty"` // nil: 1; 0: failures are not counted
	FailTimeout Duration `json:"fail_timeout,omitempty"`
	SlowStart   Duration `json:"slow_start,omitempty"`
	// Zone ([A-Za-z0-9._-]), Version ([A-Za-z0-9._+~:-]) and Tags ([A-Za-z0-9._:/=+@-]) group instances; up to 64
	// bytes each. Meta is labels that nobody interprets, except in beats of agents, where it is their report.
	Zone    string            `json:"zone,omitempty"`
	Version string            `json:"version,omitempty"`
	Tags    []string          `json:"tags,omitempty"`
	Meta    map[string]string `json:"meta,omitempty"`
	// Load and Resources are what the sender knows of its own load.
	Load      *Load      `json:"load,omitempty"`
	Resources *Resources `json:"resources,omitempty"`
	// Interval is how often the sender promises to beat. StaleAfter is how much stream time may pass without a beat
	// before the instance counts as stale; see StaleLimit for what holds when it is not given.
	Interval   Duration `json:"interval,omitempty"`
	StaleAfter Duration `json:"stale_after,omitempty"`
}

// Load is what a sender knows of its work. Zero means unknown or none.
type Load struct {
	InFlight  int     `json:"in_flight,omitempty"`  // requests being served
	RPS       float64 `json:"rps,omitempty"`        // requests per second
	LatencyMS float64 `json:"latency_ms,omitempty"` // of a typical request
}

// Resources is what a sender knows of its machine's share. Zero means unknown.
type Resources struct {
	CPU    float64 `json:"cpu,omitempty"`    // share of the machine: 1 is all of it
	Memory int64   `json:"memory,omitempty"` // bytes
}

// Key is the record key of the beat, service/id. Beats of one instance share a partition because they share it.
func (b Beat) Key() []byte {
	key := make([]byte, 0, len(b.Service)+1+len(b.ID))
	key = append(key, b.Service...)
	key = append(key, '/')
	return append(key, b.ID...)
}

// HasAddress reports whether the beat says where to reach the instance. Only a beat that says leaving may not.
func (b Beat) HasAddress() bool { return b.IP != "" && b.Port != 0 }

// FailLimits are max_fails and fail_timeout with nginx's defaults where the beat says nothing: 1 and 10 s.
func (b Beat) FailLimits() (maxFails int, failTimeout time.Duration) {
	maxFails, failTimeout = DefaultMaxFails, DefaultFailTimeout
	if b.MaxFails != nil {
		maxFails = *b.MaxFails
	}
	if b.FailTimeout != 0 {
		failTimeout = time.Duration(b.FailTimeout)
	}
	return maxFails, failTimeout
}

// StaleLimit is how much stream time may pass without a beat before the instance is stale: StaleAfter if it is given,
// else three intervals, held between MinStaleLimit and MaxStaleLimit.
func (b Beat) StaleLimit() time.Duration {
	if b.StaleAfter != 0 {
		return time.Duration(b.StaleAfter)
	}
	interval := time.Duration(b.Interval)
	if interval == 0 {
		interval = DefaultInterval
	}
	return min(max(3*interval, MinStaleLimit), MaxStaleLimit)
}

// Encode validates the beat and returns its record value: the JSON of its canonical form. The error is an
// *InvalidError.
func (b Beat) Encode() ([]byte, error) {
	c, err := b.Canonical()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("beat of %s/%s: encode: %w", b.Service, b.ID, err)
	}
	value := bytes.TrimSuffix(buf.Bytes(), []byte{'\n'})
	if len(value) > MaxRecord {
		return nil, tooLarge(len(value))
	}
	return value, nil
}

// DecodeRecord is Decode of a record of the topic: its key, when there is one, must be the beat's service/id. Records
// without a key (an empty one counts as none) are accepted on purpose: kcat and many clients write such unless told
// otherwise. Their beats may come by any partition, and the age of an instance moves with them; with incarnation and
// seq the newest beat wins all the same, without them an older one that is read later may.
func DecodeRecord(key, value []byte) (Beat, error) {
	b, err := Decode(value)
	if err != nil {
		return Beat{}, err
	}
	if len(key) > 0 && !isKey(key, b.Service, b.ID) {
		return Beat{}, &InvalidError{Reason: KeyMismatch, Problems: []Problem{
			{Field: "key", Reason: KeyMismatch, Message: "is not the beat's service/id", Value: quoted(string(key)), Allowed: b.Service + "/" + b.ID}}}
	}
	return b, nil
}

func isKey(key []byte, service, id string) bool {
	n := len(service)
	return len(key) == n+1+len(id) && key[n] == '/' && string(key[:n]) == service && string(key[n+1:]) == id
}
