package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"

	"github.com/upstrand/upstrand/registry/wire"
)

// Services is a page of services.
func (c *Client) Services(ctx context.Context, q ServiceQuery) (wire.ServiceList, error) {
	return get[wire.ServiceList](ctx, c, []string{"services"}, q.values(), 0)
}

// Service is one service; see IsNotFound.
func (c *Client) Service(ctx context.Context, name string) (wire.Service, error) {
	return get[wire.Service](ctx, c, []string{"services", name}, nil, 0)
}

// Instances is a page of instances.
func (c *Client) Instances(ctx context.Context, q InstanceQuery) (wire.InstanceList, error) {
	return get[wire.InstanceList](ctx, c, []string{"instances"}, q.values(), 0)
}

// ServiceInstances is a page of the instances of one service; q.Services must be empty. See IsNotFound.
func (c *Client) ServiceInstances(ctx context.Context, service string, q InstanceQuery) (wire.InstanceList, error) {
	return get[wire.InstanceList](ctx, c, []string{"services", service, "instances"}, q.values(), 0)
}

// Instance is one instance; see IsNotFound.
func (c *Client) Instance(ctx context.Context, service, id string) (wire.Instance, error) {
	return get[wire.Instance](ctx, c, []string{"instances", service, id}, nil, 0)
}

// Topology is a version with a page of its records; see IsNotFound.
func (c *Client) Topology(ctx context.Context, q TopologyQuery) (wire.Topology, error) {
	return get[wire.Topology](ctx, c, []string{"topology"}, q.values(), 0)
}

// Versions is a page of topology versions, newest first.
func (c *Client) Versions(ctx context.Context, p Page) (wire.TopologyVersionList, error) {
	return get[wire.TopologyVersionList](ctx, c, []string{"topology", "versions"}, newValues(p).Values, 0)
}

// Agents is a page of agents.
func (c *Client) Agents(ctx context.Context, p Page) (wire.AgentList, error) {
	return get[wire.AgentList](ctx, c, []string{"agents"}, newValues(p).Values, 0)
}

// Events is a page of events.
func (c *Client) Events(ctx context.Context, q EventQuery) (wire.EventList, error) {
	return get[wire.EventList](ctx, c, []string{"events"}, q.values(), q.Wait)
}

// Streams is all partitions of the heartbeat topic.
func (c *Client) Streams(ctx context.Context) (wire.StreamList, error) {
	return get[wire.StreamList](ctx, c, []string{"streams"}, nil, 0)
}

// Rejected is a page of rejected records, newest first.
func (c *Client) Rejected(ctx context.Context, q RejectedQuery) (wire.RejectedList, error) {
	return get[wire.RejectedList](ctx, c, []string{"rejected"}, q.values(), 0)
}

// SendBeats posts beats. When some were not accepted the error is an *Error whose Problem.Result says what became of
// each, and the answer says the same.
func (c *Client) SendBeats(ctx context.Context, beats ...json.RawMessage) (wire.BeatsAnswer, error) {
	var out wire.BeatsAnswer
	body, err := json.Marshal(beats)
	if err != nil {
		return out, fmt.Errorf("registry: encode beats: %w", err)
	}
	err = c.do(ctx, http.MethodPost, c.url([]string{"beats"}, nil), "application/json", body, 0, &out)
	if failed, ok := err.(*Error); ok && failed.Problem != nil && failed.Problem.Result != nil {
		out = *failed.Problem.Result
	}
	return out, err
}

// AllServices yields every service that q chooses, page by page. The first error ends it.
func (c *Client) AllServices(ctx context.Context, q ServiceQuery) iter.Seq2[wire.Service, error] {
	return all(q.Cursor, func(cursor string) ([]wire.Service, string, error) {
		q.Cursor = cursor
		page, err := c.Services(ctx, q)
		return page.Services, page.NextCursor, err
	})
}

// AllInstances yields every instance that q chooses, page by page. The first error ends it.
func (c *Client) AllInstances(ctx context.Context, q InstanceQuery) iter.Seq2[wire.Instance, error] {
	return all(q.Cursor, func(cursor string) ([]wire.Instance, string, error) {
		q.Cursor = cursor
		page, err := c.Instances(ctx, q)
		return page.Instances, page.NextCursor, err
	})
}

// AllVersions yields every kept topology version, newest first. The first error ends it.
func (c *Client) AllVersions(ctx context.Context, p Page) iter.Seq2[wire.TopologyVersion, error] {
	return all(p.Cursor, func(cursor string) ([]wire.TopologyVersion, string, error) {
		p.Cursor = cursor
		page, err := c.Versions(ctx, p)
		return page.Versions, page.NextCursor, err
	})
}

// AllAgents yields every agent. The first error ends it.
func (c *Client) AllAgents(ctx context.Context, p Page) iter.Seq2[wire.Agent, error] {
	return all(p.Cursor, func(cursor string) ([]wire.Agent, string, error) {
		p.Cursor = cursor
		page, err := c.Agents(ctx, p)
		return page.Agents, page.NextCursor, err
	})
}

// AllEvents yields events from the newest to the oldest; q.After must be nil. The first error ends it.
func (c *Client) AllEvents(ctx context.Context, q EventQuery) iter.Seq2[wire.Event, error] {
	return all(q.Cursor, func(cursor string) ([]wire.Event, string, error) {
		q.Cursor = cursor
		page, err := c.Events(ctx, q)
		return page.Events, page.NextCursor, err
	})
}

// AllRejected yields the kept rejected records from the newest to the oldest. The first error ends it.
func (c *Client) AllRejected(ctx context.Context, q RejectedQuery) iter.Seq2[wire.Rejected, error] {
	return all(q.Cursor, func(cursor string) ([]wire.Rejected, string, error) {
		q.Cursor = cursor
		page, err := c.Rejected(ctx, q)
		return page.Rejected, page.NextCursor, err
	})
}

// WholeTopology is a version with all the records that q chooses. The version is fixed by the first page, so a
// version that is published meanwhile does not mix in.
func (c *Client) WholeTopology(ctx context.Context, q TopologyQuery) (wire.Topology, error) {
	whole, err := c.Topology(ctx, q)
	for err == nil && whole.NextCursor != "" {
		var page wire.Topology
		q.Version, q.Cursor = whole.Version, whole.NextCursor
		page, err = c.Topology(ctx, q)
		whole.Content = append(whole.Content, page.Content...)
		whole.NextCursor = page.NextCursor
	}
	return whole, err
}

func all[T any](cursor string, page func(cursor string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			items, next, err := page(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = next
		}
	}
}
