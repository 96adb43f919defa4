package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

// UpstrandZone is the parameter that both routes have.
type UpstrandZone struct {
	Zone string `query:"zone" minLength:"0" maxLength:"64" doc:"As a proxy of this zone walks them; empty: one without a zone; absent: as published."`
	Given
}

type upstrandsInput struct {
	UpstrandZone
	PageInput
}

func (a *api) listUpstrands(ctx context.Context, in *upstrandsInput) (*output[wire.UpstrandList], error) {
	after := ""
	if in.Cursor != "" {
		key, err := decodeCursor(cursorUpstrands, in.Cursor)
		if err != nil {
			return nil, badCursor(in.Cursor)
		}
		after = key[0]
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	view, err := a.strands.of(ctx, a.store, in.zone())
	if errors.Is(err, errUnpublished) {
		return &output[wire.UpstrandList]{wire.UpstrandList{Upstrands: []wire.Upstrand{}}}, nil
	}
	if err != nil {
		return nil, a.noUpstrands(ctx, err)
	}
	strands := view.byName
	for len(strands) > 0 && strands[0].Name <= after {
		strands = strands[1:]
	}
	strands, more := cut(strands[:min(len(strands), in.Limit+1)], in.Limit)
	list := wire.UpstrandList{Upstrands: make([]wire.Upstrand, len(strands)), Version: view.version}
	for i, s := range strands {
		list.Upstrands[i] = view.upstrand(s, false)
	}
	if err := a.blacklists(ctx, list.Upstrands); err != nil {
		return nil, a.unreadable(ctx, err)
	}
	if more {
		list.NextCursor = encodeCursor(cursorUpstrands, strands[len(strands)-1].Name)
	}
	return &output[wire.UpstrandList]{list}, nil
}

type upstrandInput struct {
	Name string `path:"name" maxLength:"200"`
	UpstrandZone
}

func (a *api) getUpstrand(ctx context.Context, in *upstrandInput) (*output[wire.Upstrand], error) {
	ctx, cancel := a.read(ctx)
	defer cancel()
	view, err := a.strands.of(ctx, a.store, in.zone())
	if err != nil && !errors.Is(err, errUnpublished) {
		return nil, a.noUpstrands(ctx, err)
	}
	var found *topology.Strand
	if view != nil {
		found = view.named(in.Name)
	}
	if found == nil {
		return nil, notFound("path.name", shown(in.Name), "no upstrand %q in the newest topology version; GET /v1/upstrands lists those that are", in.Name)
	}
	one := []wire.Upstrand{view.upstrand(found, true)}
	if err := a.blacklists(ctx, one); err != nil {
		return nil, a.unreadable(ctx, err)
	}
	return &output[wire.Upstrand]{one[0]}, nil
}

// zone is that of the proxy to look from; nil: as published.
func (in *UpstrandZone) zone() *string {
	if in.has("zone") {
		return &in.Zone
	}
	return nil
}

// noUpstrands is the answer when the newest version can't be read.
func (a *api) noUpstrands(ctx context.Context, err error) *problem {
	if !errors.Is(err, errRecords) {
		return a.unreadable(ctx, err)
	}
	a.cfg.Logger.Error().Err(err).Msg("the newest topology version can't be understood")
	return newProblem(http.StatusInternalServerError, "the newest topology version has records that this registry does not understand; its log says which")
}

// upstrand is one for the answer; servers: with those of its members.
func (v *strandView) upstrand(s *topology.Strand, servers bool) wire.Upstrand {
	out := wire.Upstrand{
		Name: s.Name, Origin: string(s.Origin), OwnZoneFirst: v.ownZone[s.Name], Start: wire.StartTurn,
		NextStatuses: append([]string{}, s.NextStatuses...), NonIdempotent: s.NonIdempotent, NextTimeout: s.NextTimeout.Seconds(),
		Members: make([]wire.UpstrandMember, len(s.Members)), Routes: append([]string{}, v.routes[s.Name]...), Blacklisted: []wire.Blacklisted{},
		Problems: v.problems[s.Name],
	}
	switch {
	case s.PerRequest && s.StartRandom:
		out.Start = wire.StartRandom
	case s.PerRequest:
		out.Start = wire.StartFirst
	}
	for _, i := range s.Intercepts {
		out.Intercepts = append(out.Intercepts, wire.UpstrandIntercept{Statuses: i.Statuses, URI: i.URI})
	}
	for i, m := range s.Members {
		out.Members[i] = memberOf(v.groups[m.Upstream], m, servers)
	}
	return out
}

func memberOf(g *topology.Group, m topology.Member, servers bool) wire.UpstrandMember {
	out := wire.UpstrandMember{Upstream: m.Upstream, Origin: string(topology.Declared), Backup: m.Backup, Interval: m.Blacklist.Seconds()}
	if g == nil {
		return out
	}
	out.Origin = string(g.Origin)
	for _, p := range g.Peers {
		if out.Peers++; !p.Down && !p.Drain {
			out.Usable++
		}
		if !servers {
			continue
		}
		addr := p.Addr
		if strings.HasPrefix(addr, lookedUp.String()+":") {
			addr = ""
		}
		out.Servers = append(out.Servers, wire.UpstrandPeer{
			Server: p.Key.Server, Addr: addr, Weight: p.Weight, Zone: p.Zone, Version: p.Version, Backup: p.Backup, Down: p.Down, Draining: p.Drain, Unproven: p.Unproven,
		})
	}
	return out
}

// blacklists adds what proxies report.
func (a *api) blacklists(ctx context.Context, list []wire.Upstrand) error {
	if len(list) == 0 {
		return nil
	}
	of := make(map[string]*wire.Upstrand, len(list))
	for i := range list {
		of[list[i].Name] = &list[i]
	}
	now := a.cfg.Now().UnixMicro()
	for after := (*registry.InstanceKey)(nil); ; {
		agents, err := a.store.ListAgents(ctx, after, agentsAtOnce)
		if err != nil {
			return err
		}
		for _, v := range agents {
			for _, b := range blacklistOf(v.Report) {
				if u := of[b.upstrand]; u != nil && b.until > now {
					u.Blacklisted = append(u.Blacklisted, wire.Blacklisted{
						Agent: v.Service + "/" + v.ID, Upstream: b.upstream, Until: wire.Time(b.until), ReportAge: a.since(v.ReportedAt),
					})
				}
			}
		}
		if len(agents) < agentsAtOnce {
			break
		}
		last := agents[len(agents)-1]
		after = &registry.InstanceKey{Service: last.Service, ID: last.ID}
	}
	for i := range list {
		slices.SortFunc(list[i].Blacklisted, func(x, y wire.Blacklisted) int {
			return cmp.Or(cmp.Compare(x.Upstream, y.Upstream), cmp.Compare(x.Agent, y.Agent))
		})
	}
	return nil
}

const agentsAtOnce = 1000

type reportedBlacklist struct {
	upstrand, upstream string
	until              int64 // Unix µs
}

// blacklistOf reads what an agent reports as blacklisted. What can't be understood is passed over.
func blacklistOf(report []byte) (list []reportedBlacklist) {
	var fields agentReport
	if len(report) == 0 || json.Unmarshal(report, &fields) != nil || fields[wire.ReportBlacklisted] == "" {
		return nil
	}
	var rows []any
	if json.Unmarshal([]byte(fields[wire.ReportBlacklisted]), &rows) != nil {
		return nil
	}
	for _, r := range rows {
		row, _ := r.([]any)
		if len(row) != 3 {
			continue
		}
		upstrand, ok1 := row[0].(string)
		upstream, ok2 := row[1].(string)
		until, ok3 := row[2].(float64)
		if ok1 && ok2 && ok3 && until > 0 && until < 1<<40 {
			list = append(list, reportedBlacklist{upstrand, upstream, int64(until) * 1e6})
		}
	}
	return list
}
