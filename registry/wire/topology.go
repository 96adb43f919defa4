package wire

import "encoding/json"

// TopologyVersion is one published version of the topology.
type TopologyVersion struct {
	Version   int64  `json:"version"`
	Epoch     int64  `json:"epoch" doc:"Which confgen leadership published it."`
	Digest    string `json:"digest" doc:"Set digest over all live records, hex."`
	Records   int    `json:"records" doc:"Live records of the version."`
	Changed   int    `json:"changed" doc:"Records that it wrote or removed."`
	Cause     string `json:"cause" doc:"What led to it, for people."`
	Revision  int64  `json:"revision" doc:"Registry revision that it was built from."`
	CreatedAt Time   `json:"created_at" format:"date-time"`
}

// TopologyVersionList is a page of versions, newest first.
type TopologyVersionList struct {
	Versions   []TopologyVersion `json:"versions"`
	NextCursor string            `json:"next_cursor,omitempty" doc:"Give it as cursor to get the next page; absent on the last one."`
}

// TopologyRecord is one keyed record of topic_upstream_conf.
type TopologyRecord struct {
	Key   string          `json:"key" example:"service/orders" doc:"service/NAME, service/NAME/k, upstream/NAME, upstrand/NAME or route/HOST/PATH."`
	Value json.RawMessage `json:"value" doc:"As published."`
}

// Topology is a version with a page of the records that are live in it, by key.
type Topology struct {
	TopologyVersion
	Content    []TopologyRecord `json:"content"`
	NextCursor string           `json:"next_cursor,omitempty" doc:"Give it as cursor, together with version, to get the next page; absent on the last one."`
}

// The states of an agent's topology, compared with the newest version of the registry.
const (
	AgentCurrent   = "current"   // same version, same digest
	AgentBehind    = "behind"    // an older version
	AgentAhead     = "ahead"     // a newer version than the registry knows: the database was restored
	AgentDifferent = "different" // same version, another digest
	AgentUnknown   = "unknown"   // it has reported no version yet
)

// Agent is a proxy as its own beats report it.
type Agent struct {
	Instance        Instance        `json:"instance"`
	State           string          `json:"state" enum:"current,behind,ahead,different,unknown" doc:"Its topology compared with the registry's newest version; ahead: newer than the registry knows, which happens when a database was restored; unknown: it has reported none."`
	Version         *int64          `json:"topology_version,omitempty" doc:"Version that it serves."`
	Epoch           *int64          `json:"topology_epoch,omitempty"`
	Digest          string          `json:"topology_digest,omitempty"`
	DigestEqual     *bool           `json:"digest_equal,omitempty" doc:"Whether that is the digest of the registry's newest version."`
	VersionsBehind  *int64          `json:"versions_behind,omitempty" doc:"How many kept versions are newer than the one that it serves."`
	TopologyAge     *float64        `json:"topology_age_s,omitempty" doc:"Its own word when it reported: seconds since the version that it serves was made."`
	CommitAge       *float64        `json:"commit_age_s,omitempty" doc:"Its own word when it reported: seconds since it saw a commit, which the leader repeats every 10 s."`
	Source          string          `json:"topology_source,omitempty" example:"topic" doc:"Where it has its topology from: the topic, or the file that it kept it in."`
	LastError       string          `json:"last_error,omitempty" doc:"Why it could not apply what is newer."`
	ReportedAt      *Time           `json:"reported_at,omitempty" format:"date-time"`
	ReportAge       *float64        `json:"report_age_s,omitempty" doc:"Seconds of wall time since the report was read."`
	Report          json.RawMessage `json:"report,omitempty" doc:"All that it reports, as sent."`
	RegistryVersion int64           `json:"registry_version" doc:"Newest version of the registry when this was read; 0: none yet."`
}

// AgentList is a page of agents, by service and id.
type AgentList struct {
	Agents     []Agent `json:"agents"`
	NextCursor string  `json:"next_cursor,omitempty" doc:"Give it as cursor to get the next page; absent on the last one."`
}
