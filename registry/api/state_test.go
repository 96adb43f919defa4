package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/upstrand/upstrand/registry/registrytest"
	"github.com/upstrand/upstrand/registry/wire"
)

// What keeps traffic from instances that are routable is shown where one looks for it: all of them drain, or their url
// belongs to another service.
func TestWhyARoutableInstanceGetsNoTrafficIsShown(t *testing.T) {
	s, db := registrytest.SQLite(t)
	registrytest.Fleet(t, db)
	registrytest.Insert(t, db, "service", registrytest.Row{"name": "late", "created_at": 1, "revision": 9})
	registrytest.Add(t, db, registrytest.Instance{ID: 40, Service: "late", IID: "l1", With: registrytest.Row{"url": "/orders/", "status": "draining"}})
	h := newAPI(t, s, nil)
	late := read[wire.Service](t, h, "/v1/services/late")
	if diff := cmp.Diff([]wire.RefusedURL{{Path: "/orders", Owner: "orders"}}, late.Refused); diff != "" || late.State != wire.ServiceDraining {
		t.Errorf("%s %s", late.State, diff)
	}
	l1 := read[wire.Instance](t, h, "/v1/instances/late/l1")
	if diff := cmp.Diff(&wire.RefusedURL{Path: "/orders", Owner: "orders"}, l1.RefusedURL); diff != "" {
		t.Error(diff)
	}
	if a1 := read[wire.Instance](t, h, "/v1/instances/orders/a1"); a1.RefusedURL != nil {
		t.Errorf("%+v", a1.RefusedURL)
	}
	for state, want := range map[string]int{"draining": 1, "serving": 1, "empty": 2} {
		if list := read[wire.ServiceList](t, h, "/v1/services?state="+state); len(list.Services) != want {
			t.Errorf("%s: %+v", state, list.Services)
		}
	}
}

func TestCountsAreOfWhatWasAskedFor(t *testing.T) {
	h := fleetAPI(t)
	list := read[wire.RejectedList](t, h, "/v1/rejected?reason=not_json&partition=1")
	if diff := cmp.Diff([]wire.ReasonCount{{Reason: "not_json", Count: 2}}, list.Counts); diff != "" || len(list.Rejected) != 2 {
		t.Errorf("%d rejected, counts %s", len(list.Rejected), diff)
	}
}

// A caller whose clock is a little ahead may ask for what happened from now on.
func TestATimeOfNowIsNoTimeOfTheFuture(t *testing.T) {
	if w := get(t, fleetAPI(t), "/v1/events?since=2026-11-29T10:00:20Z"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
