package api

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

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
