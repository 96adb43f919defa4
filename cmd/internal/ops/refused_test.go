package ops

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/registry/registrytest"
)

// A path that another service has is shown at the service and at the instance that ask for it.
func TestARefusedPathIsShown(t *testing.T) {
	server, db := fleet(t)
	registrytest.Insert(t, db, "service", registrytest.Row{"name": "late", "created_at": 1, "revision": 9})
	registrytest.Add(t, db, registrytest.Instance{ID: 40, Service: "late", IID: "l1", With: registrytest.Row{"url": "/orders/"}})
	for line, want := range map[string]string{
		"service show late":     "/orders belongs to orders",
		"instance show late/l1": "/orders belongs to orders: no traffic by that path",
	} {
		var out bytes.Buffer
		if err := command(t.Context(), &out, io.Discard, server.URL, line); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "refused") {
			t.Errorf("%s:\n%s", line, &out)
		}
	}
	var out bytes.Buffer
	if err := command(t.Context(), &out, io.Discard, server.URL, "service show orders"); err != nil || strings.Contains(out.String(), "refused") {
		t.Errorf("%v\n%s", err, &out)
	}
}
