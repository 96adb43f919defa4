package client_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/upstrand/upstrand/registry/api"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/registrytest"
)

func TestUpstrandsAreRead(t *testing.T) {
	s, db := registrytest.SQLite(t)
	registrytest.Fleet(t, db)
	registrytest.Strands(t, db)
	h, err := api.New(api.Config{Store: s, Now: registrytest.Now})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Base: server.URL, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	zone, names := "b", ""
	for u, err := range c.AllUpstrands(t.Context(), client.UpstrandQuery{Zone: &zone, Page: client.Page{Limit: 1}}) {
		names += fmt.Sprint(u.Name, " ", u.Members[0].Backup, err, "; ")
	}
	if names != "canary false <nil>; orders true <nil>; " {
		t.Error(names)
	}
	one, err := c.Upstrand(t.Context(), "orders", client.UpstrandQuery{Zone: &zone, Page: client.Page{Limit: 1}})
	if err != nil || len(one.Members[1].Servers) != 2 {
		t.Errorf("%+v %v", one, err)
	}
	if _, err := c.Upstrand(t.Context(), "a/b", client.UpstrandQuery{}); !client.IsNotFound(err) {
		t.Errorf("nobody: %v", err)
	}
}
