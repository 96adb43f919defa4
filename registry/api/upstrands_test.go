package api

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/upstrand/upstrand/registry/registrytest"
	"github.com/upstrand/upstrand/registry/wire"
)

func strandsAPI(t *testing.T) http.Handler {
	t.Helper()
	s, db := registrytest.SQLite(t)
	registrytest.Fleet(t, db)
	registrytest.Strands(t, db)
	return newAPI(t, s, nil)
}

func TestUpstrandsAreAsWrittenDown(t *testing.T) {
	h := strandsAPI(t)
	for name, target := range map[string]string{
		"upstrands.txt": "/v1/upstrands", "upstrand.txt": "/v1/upstrands/canary", "upstrand_zone.txt": "/v1/upstrands/orders?zone=b",
	} {
		golden(t, name, get(t, h, target).Body.Bytes())
	}
}

// What a proxy with a zone, without one, and nobody in particular walks.
func TestUpstrandsDependOnTheZone(t *testing.T) {
	h := strandsAPI(t)
	for query, want := range map[string][]string{
		"":        {"orders@a", "orders@b"},
		"?zone=a": {"orders@a", "orders@b backup"},
		"?zone=b": {"orders@a backup", "orders@b"},
		"?zone=":  {"orders"},
		"?zone=x": {"orders"},
	} {
		var got []string
		for _, m := range read[wire.Upstrand](t, h, "/v1/upstrands/orders"+query).Members {
			name := m.Upstream
			if m.Backup {
				name += " backup"
			}
			got = append(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", query, diff)
		}
	}
}

func TestUpstrandsArePaged(t *testing.T) {
	h := strandsAPI(t)
	first := read[wire.UpstrandList](t, h, "/v1/upstrands?limit=1")
	if len(first.Upstrands) != 1 || first.Upstrands[0].Name != "canary" || first.Version != 50 || first.NextCursor == "" {
		t.Fatalf("%+v", first)
	}
	second := read[wire.UpstrandList](t, h, "/v1/upstrands?limit=1&cursor="+first.NextCursor)
	if len(second.Upstrands) != 1 || second.Upstrands[0].Name != "orders" || second.NextCursor != "" {
		t.Errorf("%+v", second)
	}
	if w := get(t, h, "/v1/upstrands?cursor=x"); w.Code != 400 {
		t.Errorf("a bad cursor: %d", w.Code)
	}
	if w := get(t, h, "/v1/upstrands/nobody"); w.Code != 404 {
		t.Errorf("nobody: %d", w.Code)
	}
	if one := read[wire.Upstrand](t, h, "/v1/upstrands/CANARY"); one.Name != "canary" {
		t.Errorf("names have no case: %+v", one)
	}
}

// The content of a version is kept; a newer one takes its place.
func TestUpstrandsAreOfTheNewestVersion(t *testing.T) {
	s, db := registrytest.SQLite(t)
	h := newAPI(t, s, nil)
	if list := read[wire.UpstrandList](t, h, "/v1/upstrands"); list.Version != 0 || len(list.Upstrands) != 0 {
		t.Errorf("nothing is published: %+v", list)
	}
	if w := get(t, h, "/v1/upstrands/orders"); w.Code != 404 {
		t.Errorf("nothing is published: %d", w.Code)
	}
	registrytest.Fleet(t, db)
	if list := read[wire.UpstrandList](t, h, "/v1/upstrands"); list.Version != 43 || len(list.Upstrands) != 1 {
		t.Errorf("%+v", list)
	}
	registrytest.Strands(t, db)
	if list := read[wire.UpstrandList](t, h, "/v1/upstrands"); list.Version != 50 || len(list.Upstrands) != 2 {
		t.Errorf("%+v", list)
	}
	registrytest.Insert(t, db, "topology_version", registrytest.Row{"version": 51, "epoch": 3, "digest": registrytest.Digest("f")})
	registrytest.Insert(t, db, "topology_record", registrytest.Row{"record_key": "upstrand/new", "version": 51, "value": []byte(`{"name":"new","from":"the future"}`)})
	if w := get(t, h, "/v1/upstrands"); w.Code != 500 {
		t.Errorf("records of a newer release: %d %s", w.Code, w.Body)
	}
}

// Pages of one zone's view come from one expansion; another zone, or another version, has its own.
func TestAZonesViewIsMadeOnce(t *testing.T) {
	s, db := registrytest.SQLite(t)
	registrytest.Fleet(t, db)
	registrytest.Strands(t, db)
	views, a, b := &strandViews{}, "a", "b"
	of := func(zone *string) *strandView {
		t.Helper()
		v, err := views.of(t.Context(), s, zone)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first := of(&a)
	if of(&a) != first {
		t.Error("made anew for the same zone")
	}
	if of(&b) == first || of(nil) == first {
		t.Error("one view for two zones")
	}
	old := of(&b)
	views.digest = "of another version"
	if of(&b) == old {
		t.Error("the view of an older version")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := views.of(ended, s, &a); err == nil {
		t.Error("a request that is over is worked for")
	}
}
