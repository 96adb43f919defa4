package registry

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
)

type serviceViewRow struct {
	Name      string         `db:"name"`
	CreatedAt int64          `db:"created_at"`
	EmptiedAt int64          `db:"emptied_at"`
	Revision  int64          `db:"revision"`
	Zone      sql.NullString `db:"zone"`
	Version   sql.NullString `db:"app_version"`
	Liveness  sql.NullString `db:"liveness"`
	Status    sql.NullString `db:"status"`
	N         int            `db:"n"`
	Path      sql.NullString `db:"path"`
	Owner     sql.NullString `db:"owner"`
}

// ListServices is a page of services by name.
func (s *Store) ListServices(ctx context.Context, f ServiceFilter) ([]ServiceView, error) {
	w := &where{}
	w.add("name < ? OR name >= ?", AgentPrefix, agentEnd)
	w.prefix("name", f.Prefix)
	const takes = "EXISTS (SELECT 1 FROM instance t WHERE t.service = service.name AND t.liveness IN ('live', 'unproven') AND t.status <> 'draining')"
	switch f.State {
	case ServiceEmpty:
		w.add("emptied_at <> 0")
	case ServiceDraining:
		w.add("emptied_at = 0 AND NOT " + takes)
	case ServiceServing:
		w.add("emptied_at = 0 AND " + takes)
	}
	if f.After != "" {
		w.add("name > ?", f.After)
	}
	return s.services(ctx, w, pageLimit(f.Limit))
}

// GetService is one service, an agents' one too, or ErrNotFound.
func (s *Store) GetService(ctx context.Context, name string) (ServiceView, error) {
	w := &where{}
	w.add("name = ?", name)
	views, err := s.services(ctx, w, 1)
	if err != nil {
		return ServiceView{}, err
	}
	if len(views) == 0 {
		return ServiceView{}, fmt.Errorf("registry: service %s: %w", name, ErrNotFound)
	}
	return views[0], nil
}

// KnownServices are those of the names that are services, in order.
func (s *Store) KnownServices(ctx context.Context, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	w := &where{}
	in(w, "name", names)
	return list[string](ctx, s.db, "services", "SELECT name FROM service"+w.String()+" ORDER BY name", w.args...)
}

// services reads the page first and joins the counted instances and the claims to it, in one statement: the parts of
// the UNION give the groups of instances, the paths, and the paths that routable instances serve and others own.
func (s *Store) services(ctx context.Context, w *where, limit int) ([]ServiceView, error) {
	page := "(SELECT name, created_at, emptied_at, revision FROM service" + w.String() + " ORDER BY name LIMIT ?) p"
	args := append(slices.Clone(w.args), limit)
	rows, err := list[serviceViewRow](ctx, s.db, "services",
		`SELECT p.name, p.created_at, p.emptied_at, p.revision, i.zone, i.app_version, i.liveness, i.status, COUNT(i.id) AS n, NULL AS path, NULL AS owner
		 FROM `+page+` LEFT JOIN instance i ON i.service = p.name
		 GROUP BY p.name, p.created_at, p.emptied_at, p.revision, i.zone, i.app_version, i.liveness, i.status
		 UNION ALL
		 SELECT p.name, p.created_at, p.emptied_at, p.revision, NULL, NULL, NULL, NULL, 0, c.path, NULL
		 FROM `+page+` JOIN route_claim c ON c.service = p.name
		 UNION ALL
		 SELECT DISTINCT p.name, p.created_at, p.emptied_at, p.revision, NULL, NULL, NULL, NULL, 0, c.path, c.service
		 FROM `+page+` JOIN instance i ON i.service = p.name AND i.liveness IN ('live', 'unproven')
		 JOIN route_claim c ON c.path = `+s.dialect.routePath("i.url")+` AND c.service <> p.name
		 ORDER BY name, path, zone, app_version, liveness, status`, slices.Concat(args, args, args)...)
	if err != nil {
		return nil, err
	}
	return foldServices(rows), nil
}

func foldServices(rows []serviceViewRow) []ServiceView {
	var views []ServiceView
	for _, r := range rows {
		if n := len(views); n == 0 || views[n-1].Name != r.Name {
			views = append(views, ServiceView{Service: Service{
				Name: r.Name, CreatedAt: r.CreatedAt, EmptiedAt: r.EmptiedAt, Revision: r.Revision,
			}})
		}
		v := &views[len(views)-1]
		switch {
		case r.Owner.Valid:
			v.Refused = append(v.Refused, RouteClaim{Path: r.Path.String, Service: r.Owner.String})
		case r.Path.Valid:
			v.Paths = append(v.Paths, r.Path.String)
		case r.N > 0:
			v.Groups = append(v.Groups, InstanceGroup{
				Zone: r.Zone.String, Version: r.Version.String, Liveness: Liveness(r.Liveness.String),
				Status: Status(r.Status.String), Count: r.N,
			})
		}
	}
	return views
}
