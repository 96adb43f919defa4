package api

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

// InstanceFilters are the parameters that choose among instances.
type InstanceFilters struct {
	Zone     string   `query:"zone" minLength:"0" maxLength:"64" doc:"Only those of the zone; zone= means those that name none."`
	Version  string   `query:"version" minLength:"0" maxLength:"64" doc:"Only those of the version; version= means those that name none."`
	Tags     []string `query:"tag" maxLength:"64" maxItems:"32" doc:"Only those with all these tags."`
	Status   []string `query:"status" enum:"up,draining,leaving" maxItems:"3" doc:"Only those that say one of these of themselves."`
	Liveness []string `query:"liveness" enum:"live,unproven,stale,left,superseded" maxItems:"5" doc:"Only those of which the registry holds one of these."`
	PageInput
	Given
}

func (f *InstanceFilters) filter(services []string) (registry.InstanceFilter, error) {
	out := registry.InstanceFilter{
		Services: services, Tags: f.Tags, Status: texts[registry.Status](f.Status),
		Liveness: texts[registry.Liveness](f.Liveness), Limit: f.Limit + 1,
	}
	if f.has("zone") {
		out.Zone = &f.Zone
	}
	if f.has("version") {
		out.Version = &f.Version
	}
	if f.Cursor != "" {
		key, err := decodeCursor(cursorInstances, f.Cursor)
		if err != nil {
			return out, badCursor(f.Cursor)
		}
		out.After = &registry.InstanceKey{Service: key[0], ID: key[1]}
	}
	return out, nil
}

func texts[T, S ~string](list []S) []T {
	out := make([]T, len(list))
	for i, s := range list {
		out[i] = T(s)
	}
	return out
}

func badCursor(cursor string) *problem {
	return badRequest([]wire.FieldError{{
		Location: "query.cursor", Message: errCursor.Error(), Value: shown(cursor),
		Allowed: "next_cursor of an earlier answer to the same request, or no cursor for the first page",
	}})
}

type instancesInput struct {
	Services []string `query:"service" maxItems:"50" pattern:"^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$" patternDescription:"a service's name: up to 64 of a-z, 0-9, dot, _ and -, with a letter or digit at both ends" doc:"Only those of these services; a name that no service has is an error, 404, on the first page."`
	InstanceFilters
}

func (a *api) listInstances(ctx context.Context, in *instancesInput) (*output[wire.InstanceList], error) {
	f, err := in.filter(in.Services)
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	if in.Cursor == "" { // later pages go on though a service was released meanwhile
		if p := a.knowAll(ctx, in.Services); p != nil {
			return nil, p
		}
	}
	return a.instances(ctx, f, in.Limit)
}

// knowAll is the answer when one of the names is no service's, else nil: an empty list would hide a slip of the pen. The
// parts of Upstrand itself have no rows of their own, and pass.
func (a *api) knowAll(ctx context.Context, names []string) *problem {
	known, err := a.store.KnownServices(ctx, names)
	if err != nil {
		return a.unreadable(ctx, err)
	}
	var all *problem
	for _, name := range names {
		if heartbeat.IsAgent(name) || slices.Contains(known, name) {
			continue
		}
		p := a.noService(ctx, "query.service", name)
		if all == nil {
			all = p
			continue
		}
		all.Errors = append(all.Errors, p.Errors...)
		all.Detail += "; " + p.Detail
	}
	return all
}

type serviceInstancesInput struct {
	Service string `path:"service" pattern:"^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$" patternDescription:"a service's name: up to 64 of a-z, 0-9, dot, _ and -, with a letter or digit at both ends"`
	InstanceFilters
}

func (a *api) listServiceInstances(ctx context.Context, in *serviceInstancesInput) (*output[wire.InstanceList], error) {
	f, err := in.filter([]string{in.Service})
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	list, err := a.instances(ctx, f, in.Limit)
	if err != nil || len(list.Body.Instances) > 0 {
		return list, err
	}
	// Empty: because of the filters, or because there is no such service?
	if heartbeat.IsAgent(in.Service) {
		return list, nil
	}
	switch _, err := a.store.GetService(ctx, in.Service); {
	case isNotFound(err):
		return nil, a.noService(ctx, "path.service", in.Service)
	case err != nil:
		return nil, a.unreadable(ctx, err)
	}
	return list, nil
}

func (a *api) instances(ctx context.Context, f registry.InstanceFilter, limit int) (*output[wire.InstanceList], error) {
	views, err := a.store.ListInstances(ctx, f)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	views, more := cut(views, limit)
	list := wire.InstanceList{Instances: make([]wire.Instance, len(views))}
	for i, v := range views {
		list.Instances[i] = instance(v)
	}
	if more {
		last := views[len(views)-1]
		list.NextCursor = encodeCursor(cursorInstances, last.Service, last.ID)
	}
	return &output[wire.InstanceList]{list}, nil
}

type instanceInput struct {
	Service string `path:"service" pattern:"^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$" patternDescription:"a service's name: up to 64 of a-z, 0-9, dot, _ and -, with a letter or digit at both ends"`
	ID      string `path:"id" pattern:"^[A-Za-z0-9._:-]{1,64}$" patternDescription:"an instance's id: 1 to 64 of letters, digits, dot, _, : and -"`
}

func (a *api) getInstance(ctx context.Context, in *instanceInput) (*output[wire.Instance], error) {
	ctx, cancel := a.read(ctx)
	defer cancel()
	view, err := a.store.GetInstance(ctx, in.Service, in.ID)
	switch {
	case isNotFound(err):
		return nil, a.noInstance(ctx, in.Service, in.ID)
	case err != nil:
		return nil, a.unreadable(ctx, err)
	}
	return &output[wire.Instance]{instance(view)}, nil
}

func (a *api) noInstance(ctx context.Context, name, id string) *problem {
	_, err := a.store.GetService(ctx, name)
	switch {
	case err == nil:
		return notFound("path.id", id, "service %s has no instance %q; GET /v1/services/%s/instances lists those it has", name, id, name)
	case !isNotFound(err):
		return a.unreadable(ctx, err)
	case heartbeat.IsAgent(name):
		return notFound("path.id", id, "there is no agent %s/%s; GET /v1/agents lists all", name, id)
	}
	return a.noService(ctx, "path.service", name)
}

func instance(v registry.InstanceView) wire.Instance {
	at := v.Attrs
	in := wire.Instance{
		Service: v.Service, ID: v.ID, Address: address(at.IP, at.Port), Scheme: at.Scheme, IP: at.IP, Port: at.Port, URL: at.URL,
		Status: string(v.Status), Liveness: string(v.Liveness), Cause: v.Cause,
		Routable: v.Liveness.Routable() && !heartbeat.IsAgent(v.Service),
		Limit:    v.StaleAfter.Seconds(), Incarnation: v.Incarnation, Interval: v.Interval.Seconds(),
		Weight: at.Weight, MaxConns: at.MaxConns, MaxFails: at.MaxFails, FailTimeout: at.FailTimeout.Seconds(),
		SlowStart: at.SlowStart.Seconds(), Zone: at.Zone, Version: at.Version, Tags: at.Tags, Meta: at.Meta,
		CreatedAt: wire.Time(v.CreatedAt), ChangedAt: wire.Time(v.ChangedAt), Revision: v.Revision, Order: v.DenseID,
	}
	if in.Tags == nil {
		in.Tags = []string{}
	}
	if v.URLOwner != "" {
		in.RefusedURL = &wire.RefusedURL{Path: registry.RoutePath(at.URL), Owner: v.URLOwner}
	}
	if v.Unproven != nil {
		held := v.Unproven.Seconds()
		in.UnprovenFor = &held
	}
	if v.Seen != nil {
		seen(&in, v.Seen)
	}
	return in
}

func seen(in *wire.Instance, s *registry.Seen) {
	at, clock := wire.Time(s.ReceivedAt), s.Clock.Seconds()
	in.Partition, in.Clock, in.LastBeatAt = &s.Part, &clock, &at
	in.Incarnation, in.Seq = s.Incarnation, s.Seq
	if s.Age != nil {
		age := s.Age.Seconds()
		in.Age = &age
	}
	if s.Skew != nil {
		skew := float64(*s.Skew) / float64(time.Millisecond)
		in.SkewMS = &skew
	}
	load := wire.Load(s.Load)
	in.Load = &load
}

// address is ip:port as a URL has it. Agents may have none.
func address(ip string, port int) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return ""
	}
	return netip.AddrPortFrom(addr, uint16(port)).String()
}
