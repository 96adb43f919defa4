package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/upstrand/upstrand/registry/wire"
)

// Declare declares a file of the topology, or says what that would do. Faults of the file are an *Error of status 422 whose
// Problem has each with FILE:LINE as its location; see IsConflict too.
func (c *Client) Declare(ctx context.Context, req wire.DeclareRequest) (wire.DeclareAnswer, error) {
	var out wire.DeclareAnswer
	body, err := json.Marshal(req)
	if err != nil {
		return out, fmt.Errorf("registry: encode the declaration: %w", err)
	}
	err = c.do(ctx, http.MethodPost, c.url([]string{"topology"}, nil), "application/json", body, 0, &out)
	return out, err
}

// DeleteDeclared takes a declared file out; of req the text is not used. See IsNotFound and IsConflict.
func (c *Client) DeleteDeclared(ctx context.Context, req wire.DeclareRequest) (wire.DeclareAnswer, error) {
	v := values{url.Values{}}
	v.text("author", req.Author)
	v.text("comment", req.Comment)
	if req.DryRun {
		v.Set("dry_run", "true")
	}
	if req.Expected != nil {
		v.Set("expected_revision", strconv.FormatInt(*req.Expected, 10))
	}
	var out wire.DeclareAnswer
	err := c.do(ctx, http.MethodDelete, c.url([]string{"topology", "declared", req.Name}, v.Values), "", nil, 0, &out)
	return out, err
}

// Declared is the declared files that are in force.
func (c *Client) Declared(ctx context.Context) (wire.DeclaredTopology, error) {
	return get[wire.DeclaredTopology](ctx, c, []string{"topology", "declared"}, nil, 0)
}

// DeclaredFile is a declared file as one of its revisions made it; revision 0: as it is now. See IsNotFound.
func (c *Client) DeclaredFile(ctx context.Context, name string, revision int64) (wire.DeclaredFile, error) {
	path := []string{"topology", "declared", name}
	if revision != 0 {
		path = append(path, "history", strconv.FormatInt(revision, 10))
	}
	return get[wire.DeclaredFile](ctx, c, path, nil, 0)
}

// DeclaredHistory is a page of the changes of a declared file, newest first; see IsNotFound.
func (c *Client) DeclaredHistory(ctx context.Context, name string, p Page) (wire.DeclaredHistory, error) {
	return get[wire.DeclaredHistory](ctx, c, []string{"topology", "declared", name, "history"}, newValues(p).Values, 0)
}

// AllDeclaredHistory yields the changes of a declared file, newest first. The first error ends it.
func (c *Client) AllDeclaredHistory(ctx context.Context, name string, p Page) iter.Seq2[wire.DeclaredFile, error] {
	return all(p.Cursor, func(cursor string) ([]wire.DeclaredFile, string, error) {
		p.Cursor = cursor
		page, err := c.DeclaredHistory(ctx, name, p)
		return page.Changes, page.NextCursor, err
	})
}
