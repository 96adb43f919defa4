package registry_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/registrytest"
)

// contested adds two services to the fleet: night, of which only draining instances are left, and late, whose instances
// serve paths that others own beside one of its own.
func contested(t *testing.T, db *sqlx.DB) {
	registrytest.Fleet(t, db)
	registrytest.Insert(t, db, "service", registrytest.Row{"name": "night", "created_at": 1, "revision": 9})
	registrytest.Insert(t, db, "service", registrytest.Row{"name": "late", "created_at": 1, "revision": 9})
	registrytest.Insert(t, db, "route_claim", registrytest.Row{"path": "/late", "service": "late", "claimed_at": 1, "revision": 9})
	for _, in := range []registrytest.Instance{
		{ID: 40, Service: "night", IID: "n1", With: registrytest.Row{"status": "draining", "url": "/"}},
		{ID: 41, Service: "night", IID: "n2", With: registrytest.Row{"status": "draining", "liveness": "unproven"}},
		{ID: 42, Service: "night", IID: "n3", With: registrytest.Row{"liveness": "stale"}},
		{ID: 43, Service: "late", IID: "l1", With: registrytest.Row{"url": "/orders/"}},
		{ID: 44, Service: "late", IID: "l2", With: registrytest.Row{"url": "/orders"}},
		{ID: 45, Service: "late", IID: "l3", With: registrytest.Row{"url": "/late/"}},
		{ID: 46, Service: "late", IID: "l4", With: registrytest.Row{"url": "/basket", "liveness": "stale"}},
		{ID: 47, Service: "late", IID: "l5", With: registrytest.Row{"url": "/orders/x"}},
		{ID: 48, Service: "upstrand-proxy", IID: "p9", With: registrytest.Row{"url": "/orders"}},
	} {
		registrytest.Add(t, db, in)
	}
}

// A service whose routable instances are all draining takes no traffic, so it does not serve.
func TestTheStateGoesByWhoTakesTraffic(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		contested(t, db)
		for state, want := range map[registry.ServiceState]string{
			registry.ServiceServing: "late orders", registry.ServiceDraining: "night", registry.ServiceEmpty: "billing web", "": "billing late night orders web",
		} {
			views, err := s.ListServices(t.Context(), registry.ServiceFilter{State: state})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, v := range views {
				names = append(names, v.Name)
				if state != "" && v.State() != state {
					t.Errorf("%s is listed as %s and says %s", v.Name, state, v.State())
				}
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s: %s, want %s", state, got, want)
			}
		}
	})
}

func TestARefusedPathShowsItsOwner(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		contested(t, db)
		for name, want := range map[string][]registry.RouteClaim{
			"late": {{Path: "/orders", Service: "orders"}}, "night": {{Path: "/", Service: "web"}}, "orders": nil,
		} {
			v, err := s.GetService(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, v.Refused); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if name == "late" && (!slices.Equal(v.Paths, []string{"/late"}) || len(v.Groups) != 2) {
				t.Errorf("%+v", v)
			}
		}
		owners := map[string]string{}
		views, err := s.ListInstances(t.Context(), registry.InstanceFilter{Agents: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range views {
			if v.URLOwner != "" {
				owners[v.ID] = v.URLOwner
			}
		}
		if diff := cmp.Diff(map[string]string{"n1": "web", "l1": "orders", "l2": "orders"}, owners); diff != "" {
			t.Error(diff)
		}
		one, err := s.GetInstance(t.Context(), "late", "l1")
		if err != nil || one.URLOwner != "orders" {
			t.Errorf("%+v, %v", one, err)
		}
	})
}

func TestKnownServicesAreTold(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		registrytest.Fleet(t, db)
		got, err := s.KnownServices(t.Context(), []string{"web", "ordesr", "billing"})
		if err != nil || !slices.Equal(got, []string{"billing", "web"}) {
			t.Errorf("%v, %v", got, err)
		}
		if got, err := s.KnownServices(t.Context(), nil); err != nil || got != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestCountsOfRejectedAreFiltered(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		registrytest.Fleet(t, db)
		for name, c := range map[string]struct {
			filter registry.RejectedFilter
			want   []registry.ReasonCount
		}{
			"all":       {registry.RejectedFilter{}, []registry.ReasonCount{{"bad_port", 1}, {"not_json", 5002}, {"not_object", 1}}},
			"reason":    {registry.RejectedFilter{Reasons: []string{"not_json"}}, []registry.ReasonCount{{"not_json", 5002}}},
			"partition": {registry.RejectedFilter{Part: ptr(int32(1))}, []registry.ReasonCount{{"not_json", 2}, {"not_object", 1}}},
			"both":      {registry.RejectedFilter{Reasons: []string{"not_json"}, Part: ptr(int32(0))}, []registry.ReasonCount{{"not_json", 5000}}},
		} {
			got, err := s.RejectedCounts(t.Context(), c.filter)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

// The lists by which the API refuses an unknown word hold every constant that there is.
func TestTheListsOfWordsAreWhole(t *testing.T) {
	for _, c := range []struct {
		file, prefix string
		list         []string
	}{
		{"event.go", "Event", registry.EventKinds()},
		{"rejected.go", "Rejected", registry.RejectedReasons()},
	} {
		want := constants(t, c.file, c.prefix)
		got := slices.Sorted(slices.Values(c.list))
		if diff := cmp.Diff(want, got); diff != "" || len(got) < 5 {
			t.Errorf("%s (-constants +list):\n%s", c.file, diff)
		}
	}
}

// constants are the values of a file's text constants with the prefix.
func constants(t *testing.T, file, prefix string) (values []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) || len(spec.Values) == 0 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			values = append(values, text)
		}
		return true
	})
	slices.Sort(values)
	return values
}
