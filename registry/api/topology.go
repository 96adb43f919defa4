package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

type topologyInput struct {
	Version int64  `query:"version" minimum:"1" doc:"Which version; absent: the newest."`
	Prefix  string `query:"prefix" maxLength:"400" doc:"Only records whose key begins so, such as route/ or service/orders."`
	PageInput
}

func (a *api) getTopology(ctx context.Context, in *topologyInput) (*output[wire.Topology], error) {
	number, after, err := in.place()
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	version, err := a.store.GetVersion(ctx, number)
	if err != nil {
		return nil, a.noVersion(ctx, number, err)
	}
	records, err := a.store.VersionRecords(ctx, version.Version, in.Prefix, after, in.Limit+1)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	// Records are trimmed after their version, so one that is still there has been read whole.
	if _, err := a.store.GetVersion(ctx, version.Version); err != nil {
		return nil, a.noVersion(ctx, version.Version, err)
	}
	records, more := cut(records, in.Limit)
	t := wire.Topology{TopologyVersion: topologyVersion(version), Content: make([]wire.TopologyRecord, len(records))}
	for i, r := range records {
		t.Content[i] = wire.TopologyRecord{Key: r.Key, Value: rawJSON(r.Value)}
	}
	if more {
		t.NextCursor = encodeCursor(cursorTopology, strconv.FormatInt(version.Version, 10), records[len(records)-1].Key)
	}
	return &output[wire.Topology]{t}, nil
}

// place is the version to read and the key to read on after. A cursor fixes the version, so that pages don't mix two.
func (in *topologyInput) place() (version int64, after string, err error) {
	if in.Cursor == "" {
		return in.Version, "", nil
	}
	key, err := decodeCursor(cursorTopology, in.Cursor)
	if err != nil {
		return 0, "", badCursor(in.Cursor)
	}
	version, err = strconv.ParseInt(key[0], 10, 64)
	if err != nil || version < 1 {
		return 0, "", badCursor(in.Cursor)
	}
	if in.Version != 0 && in.Version != version {
		return 0, "", badRequest([]wire.FieldError{{
			Location: "query.version", Message: "is another version than the cursor's", Value: strconv.FormatInt(in.Version, 10),
			Allowed: fmt.Sprintf("%d, or no version beside a cursor", version),
		}})
	}
	return version, key[1], nil
}

func (a *api) noVersion(ctx context.Context, number int64, err error) *problem {
	if !isNotFound(err) {
		return a.unreadable(ctx, err)
	}
	if number == 0 {
		return notFound("path", "", "no topology has been published yet")
	}
	return notFound("query.version", strconv.FormatInt(number, 10),
		"topology version %d is not kept, or never was; GET /v1/topology/versions lists those that are", number)
}

// rawJSON is a value as it stands when it is JSON, else as a JSON string.
func rawJSON(value []byte) json.RawMessage {
	if json.Valid(value) {
		return value
	}
	text, _ := json.Marshal(printable(value)) // a string always encodes
	return text
}

func topologyVersion(v registry.Version) wire.TopologyVersion {
	return wire.TopologyVersion{
		Version: v.Version, Epoch: v.Epoch, Digest: v.Digest, Records: v.Records, Changed: v.Changed, Cause: v.Cause,
		Revision: v.Revision, CreatedAt: wire.Time(v.CreatedAt),
	}
}

type versionsInput struct{ PageInput }

func (a *api) listVersions(ctx context.Context, in *versionsInput) (*output[wire.TopologyVersionList], error) {
	var before int64
	if in.Cursor != "" {
		key, err := decodeNumbers(cursorVersions, in.Cursor)
		if err != nil {
			return nil, badCursor(in.Cursor)
		}
		before = key[0]
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	versions, err := a.store.ListVersions(ctx, before, in.Limit+1)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	versions, more := cut(versions, in.Limit)
	list := wire.TopologyVersionList{Versions: make([]wire.TopologyVersion, len(versions))}
	for i, v := range versions {
		list.Versions[i] = topologyVersion(v)
	}
	if more {
		list.NextCursor = encodeNumbers(cursorVersions, versions[len(versions)-1].Version)
	}
	return &output[wire.TopologyVersionList]{list}, nil
}

type agentsInput struct{ PageInput }

func (a *api) listAgents(ctx context.Context, in *agentsInput) (*output[wire.AgentList], error) {
	var after *registry.InstanceKey
	if in.Cursor != "" {
		key, err := decodeCursor(cursorAgents, in.Cursor)
		if err != nil {
			return nil, badCursor(in.Cursor)
		}
		after = &registry.InstanceKey{Service: key[0], ID: key[1]}
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	views, err := a.store.ListAgents(ctx, after, in.Limit+1)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	views, more := cut(views, in.Limit)
	list := wire.AgentList{Agents: make([]wire.Agent, len(views))}
	for i, v := range views {
		list.Agents[i] = a.agent(v)
	}
	if err := a.compare(ctx, list.Agents); err != nil {
		return nil, a.unreadable(ctx, err)
	}
	if more {
		last := views[len(views)-1]
		list.NextCursor = encodeCursor(cursorAgents, last.Service, last.ID)
	}
	return &output[wire.AgentList]{list}, nil
}

// agentReport is what is known of an agent's report: an object of strings.
type agentReport map[string]string

func (r agentReport) number(name string) *int64 {
	n, err := strconv.ParseInt(r[name], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// seconds is a number of milliseconds in seconds.
func (r agentReport) seconds(name string) *float64 {
	ms := r.number(name)
	if ms == nil {
		return nil
	}
	s := float64(*ms) / 1000
	return &s
}

func (a *api) agent(v registry.AgentView) wire.Agent {
	out := wire.Agent{Instance: instance(v.InstanceView), State: wire.AgentUnknown}
	if len(v.Report) == 0 {
		return out
	}
	var report agentReport
	_ = json.Unmarshal(v.Report, &report) // what is no object of strings is shown, and not understood
	out.Report = rawJSON(v.Report)
	out.Version, out.Epoch = report.number("topology_version"), report.number("topology_epoch")
	out.Digest, out.LastError = report["topology_digest"], report["last_error"]
	out.Source, out.TopologyAge, out.CommitAge = report["topology_source"], report.seconds("topology_age_ms"), report.seconds("commit_age_ms")
	if v.ReportedAt != 0 {
		at := wire.Time(v.ReportedAt)
		age := a.since(v.ReportedAt)
		out.ReportedAt, out.ReportAge = &at, &age
	}
	return out
}

// since is the wall time since at (Unix µs), in seconds; 0 when the two clocks disagree about the order.
func (a *api) since(at int64) float64 {
	return max(0, a.cfg.Now().Sub(time.UnixMicro(at)).Seconds())
}

// compare says how each agent's topology stands to the newest version. That is read after the agents, so one that
// already has a version published in between does not look ahead of the registry.
func (a *api) compare(ctx context.Context, agents []wire.Agent) error {
	newest, err := a.store.GetVersion(ctx, 0)
	if isNotFound(err) {
		newest = registry.Version{}
	} else if err != nil {
		return err
	}
	oldest := newest.Version
	for _, agent := range agents {
		if agent.Version != nil {
			oldest = min(oldest, *agent.Version)
		}
	}
	var later []int64
	if oldest < newest.Version {
		if later, err = a.store.VersionsAfter(ctx, oldest); err != nil {
			return err
		}
	}
	for i := range agents {
		standing(&agents[i], newest, later)
	}
	return nil
}

func standing(agent *wire.Agent, newest registry.Version, later []int64) {
	agent.RegistryVersion = newest.Version
	if agent.Version == nil || *agent.Version == 0 {
		return
	}
	equal := agent.Digest == newest.Digest
	at, _ := slices.BinarySearchFunc(later, *agent.Version, func(v, served int64) int {
		return cmp.Or(cmp.Compare(v, served), -1) // the first above
	})
	behind := int64(len(later) - at)
	agent.DigestEqual, agent.VersionsBehind = &equal, &behind
	switch {
	case *agent.Version > newest.Version:
		agent.State = wire.AgentAhead
	case *agent.Version < newest.Version:
		agent.State = wire.AgentBehind
	case !equal:
		agent.State = wire.AgentDifferent
	default:
		agent.State = wire.AgentCurrent
	}
}
