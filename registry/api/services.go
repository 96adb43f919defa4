package api

import (
	"cmp"
	"context"
	"slices"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

type servicesInput struct {
	Prefix string `query:"prefix" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" patternDescription:"the beginning of a service's name" doc:"Only services whose name begins so."`
	State  string `query:"state" enum:"serving,draining,empty" doc:"Only those in this state: serving (some instance takes traffic), draining (only draining instances are left), empty (no routable instance)."`
	PageInput
}

func (a *api) listServices(ctx context.Context, in *servicesInput) (*output[wire.ServiceList], error) {
	f := registry.ServiceFilter{Prefix: in.Prefix, State: registry.ServiceState(in.State), Limit: in.Limit + 1}
	if in.Cursor != "" {
		key, err := decodeCursor(cursorServices, in.Cursor)
		if err != nil {
			return nil, badCursor(in.Cursor)
		}
		f.After = key[0]
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	views, err := a.store.ListServices(ctx, f)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	views, more := cut(views, in.Limit)
	list := wire.ServiceList{Services: make([]wire.Service, len(views))}
	for i, v := range views {
		list.Services[i] = service(v)
	}
	if more {
		list.NextCursor = encodeCursor(cursorServices, views[len(views)-1].Name)
	}
	return &output[wire.ServiceList]{list}, nil
}

type serviceInput struct {
	Service string `path:"service" pattern:"^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$" patternDescription:"a service's name: up to 64 of a-z, 0-9, dot, _ and -, with a letter or digit at both ends"`
}

func (a *api) getService(ctx context.Context, in *serviceInput) (*output[wire.Service], error) {
	ctx, cancel := a.read(ctx)
	defer cancel()
	view, err := a.store.GetService(ctx, in.Service)
	switch {
	case isNotFound(err):
		return nil, a.noService(ctx, "path.service", in.Service)
	case err != nil:
		return nil, a.unreadable(ctx, err)
	}
	return &output[wire.Service]{service(view)}, nil
}

func service(v registry.ServiceView) wire.Service {
	s := wire.Service{
		Name: v.Name, URLs: v.Paths, CreatedAt: wire.Time(v.CreatedAt), Revision: v.Revision, State: string(v.State()),
	}
	if s.URLs == nil {
		s.URLs = []string{}
	}
	if v.EmptiedAt != 0 {
		at := wire.Time(v.EmptiedAt)
		s.EmptiedAt = &at
	}
	for _, c := range v.Refused {
		s.Refused = append(s.Refused, wire.RefusedURL{Path: c.Path, Owner: c.Service})
	}
	zones, versions := map[string]wire.Group{}, map[string]wire.Group{}
	for _, g := range v.Groups {
		count(&s.Instances, g)
		addTo(zones, g.Zone, g)
		addTo(versions, g.Version, g)
	}
	s.Zones, s.Versions = groups(zones), groups(versions)
	return s
}

func count(c *wire.Counts, g registry.InstanceGroup) {
	c.Total += g.Count
	if g.Liveness.Routable() {
		c.Routable += g.Count
		if g.Status == registry.StatusDraining {
			c.Draining += g.Count
		}
	}
	switch g.Liveness {
	case registry.Live:
		c.Live += g.Count
	case registry.Unproven:
		c.Unproven += g.Count
	case registry.Stale:
		c.Stale += g.Count
	case registry.Left:
		c.Left += g.Count
	case registry.Superseded:
		c.Superseded += g.Count
	}
}

func addTo(groups map[string]wire.Group, name string, g registry.InstanceGroup) {
	sum := groups[name]
	sum.Name = name
	sum.Total += g.Count
	if g.Liveness.Routable() {
		sum.Routable += g.Count
	}
	groups[name] = sum
}

func groups(m map[string]wire.Group) []wire.Group {
	list := make([]wire.Group, 0, len(m))
	for _, g := range m {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b wire.Group) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// noService is the answer to an unknown name at a location. It names the one that was probably meant.
func (a *api) noService(ctx context.Context, location, name string) *problem {
	if heartbeat.IsAgent(name) {
		return notFound(location, name, "%q is the name of a part of Upstrand, not of a service; GET /v1/agents lists those", name)
	}
	hint := ""
	views, err := a.store.ListServices(ctx, registry.ServiceFilter{Limit: 1000})
	if err == nil {
		if near := nearest(name, views); near != "" {
			hint = "; did you mean " + near + "?"
		}
	}
	return notFound(location, name, "there is no service %q%s GET /v1/services lists all", name, cmp.Or(hint, ";"))
}

// nearest is the service whose name is at most two edits away, and not further than a third of the name.
func nearest(name string, views []registry.ServiceView) string {
	best, distance := "", min(2, len(name)/3)
	for _, v := range views {
		if d := edits(name, v.Name); d <= distance && (best == "" || d < distance) {
			best, distance = v.Name, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
