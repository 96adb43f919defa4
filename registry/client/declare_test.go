package client_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/upstrand/upstrand/registry/api"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/registrytest"
	"github.com/upstrand/upstrand/registry/wire"
)

func TestTheDeclaredTopologyIsChangedAndRead(t *testing.T) {
	s, db := registrytest.SQLite(t)
	registrytest.Fleet(t, db)
	h, err := api.New(api.Config{Store: s, Declarer: s, Now: registrytest.Now})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Base: server.URL, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	req := wire.DeclareRequest{Name: "a/b", Text: "upstream a { server 10.0.0.1:80; }", Author: "ä&b=c"}
	if _, err := c.Declare(ctx, req); err == nil || !strings.Contains(err.Error(), "body.name") {
		t.Errorf("a bad name: %v", err)
	}
	req.Name = "main"
	done, err := c.Declare(ctx, req)
	if err != nil || !done.Applied || done.Revision != 1 || len(done.Changes) != 1 || *done.Changes[0].After.Peers != 1 {
		t.Fatalf("%+v %v", done, err)
	}
	req.Expected = new(int64)
	if _, err := c.Declare(ctx, req); !client.IsConflict(err) {
		t.Errorf("expected revision 0: %v", err)
	}
	f, err := c.DeclaredFile(ctx, "main", 1)
	if err != nil || *f.Text != req.Text || f.Author != req.Author {
		t.Errorf("%+v %v", f, err)
	}
	req.Expected, req.DryRun = &done.Revision, true
	gone, err := c.DeleteDeclared(ctx, req)
	if err != nil || gone.Applied || gone.Summary != "1 upstream removed" {
		t.Errorf("%+v %v", gone, err)
	}
	req.DryRun = false
	if gone, err = c.DeleteDeclared(ctx, req); err != nil || !gone.Applied || gone.Revision != 2 {
		t.Errorf("%+v %v", gone, err)
	}
	if _, err := c.DeclaredFile(ctx, "main", 0); !client.IsNotFound(err) {
		t.Errorf("a deleted file: %v", err)
	}
	var revisions []int64
	for f, err := range c.AllDeclaredHistory(ctx, "main", client.Page{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, f.Revision)
	}
	now, err := c.Declared(ctx)
	if err != nil || now.Revision != 2 || len(now.Files) != 0 || !now.Last.Deleted {
		t.Errorf("%+v %v", now, err)
	}
	if diff := cmp.Diff([]int64{2, 1}, revisions); diff != "" {
		t.Error(diff)
	}
}
