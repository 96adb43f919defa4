package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/upstrand/upstrand/registry/wire"
)

// UpstrandQuery chooses how upstrands are seen.
type UpstrandQuery struct {
	Zone *string // as a proxy of this zone, which may be "", walks them; nil: as published
	Page
}

func (q UpstrandQuery) values() url.Values {
	v := newValues(q.Page)
	v.optional("zone", q.Zone)
	return v.Values
}

// Upstrands is a page of the upstrands of the newest topology version.
func (c *Client) Upstrands(ctx context.Context, q UpstrandQuery) (wire.UpstrandList, error) {
	return get[wire.UpstrandList](ctx, c, []string{"upstrands"}, q.values(), 0)
}

// Upstrand is one upstrand with the servers of its members; of q the page is not used. See IsNotFound.
func (c *Client) Upstrand(ctx context.Context, name string, q UpstrandQuery) (wire.Upstrand, error) {
	q.Page = Page{}
	return get[wire.Upstrand](ctx, c, []string{"upstrands", name}, q.values(), 0)
}

// AllUpstrands yields every upstrand, by name. The first error ends it.
func (c *Client) AllUpstrands(ctx context.Context, q UpstrandQuery) iter.Seq2[wire.Upstrand, error] {
	return all(q.Cursor, func(cursor string) ([]wire.Upstrand, string, error) {
		q.Cursor = cursor
		page, err := c.Upstrands(ctx, q)
		return page.Upstrands, page.NextCursor, err
	})
}
