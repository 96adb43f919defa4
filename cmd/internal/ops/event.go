package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

func eventLs(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Short: "List events, newest last, or follow them", Args: cobra.NoArgs,
		Long: "List events, newest last. With --follow go on with those that come, until interrupted; as JSON that is one event a\n" +
			"line. While the registry can't be reached, --follow says so and tries again; no event is left out.",
	}
	q := &client.EventQuery{}
	f := cmd.Flags()
	f.StringVar(&q.Service, "service", "", "only events of this service")
	f.StringVar(&q.ID, "id", "", "only events of instances with this id")
	f.StringSliceVar(&q.Kinds, "kind", nil, "only events of these kinds")
	since := f.Duration("since", 0, "only events of the time since then, such as 15m; 0: any time")
	follow := f.BoolP("follow", "f", false, "go on with the events that come")
	limit := limited(cmd, 50)
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, _ []string) error {
		query := *q
		if *since > 0 {
			query.Since = time.Now().Add(-*since)
		}
		return showEvents(ctx, cl, out, query, *limit, *follow)
	})
	return cmd
}

func showEvents(ctx context.Context, cl *client.Client, out *printer, q client.EventQuery, limit int, follow bool) error {
	q.Page = page(limit)
	first, err := cl.Events(ctx, q)
	if err != nil {
		return err
	}
	events := first.Events
	if first.NextCursor != "" && (limit == 0 || limit > len(events)) {
		q.Cursor = first.NextCursor
		older, err := collect(cl.AllEvents(ctx, q), max(0, limit-len(events)))
		if err != nil {
			return err
		}
		events = append(events, older...)
	}
	slices.Reverse(events)
	if !follow {
		if out.json {
			return out.value(wire.EventList{Events: events, LastSeq: first.LastSeq})
		}
		return eventTable(out, events)
	}
	for _, e := range events {
		if err := eventLine(out, e); err != nil {
			return err
		}
	}
	q.After, q.Cursor, q.Since = &first.LastSeq, "", time.Time{}
	return followEvents(ctx, cl, out, q)
}

// retryPause is how long a follower waits after a failure.
const retryPause = 2 * time.Second

func followEvents(ctx context.Context, cl *client.Client, out *printer, q client.EventQuery) error {
	for e, err := range cl.Follow(ctx, q) {
		if err == nil {
			err = eventLine(out, e)
			if err != nil {
				return err
			}
			continue
		}
		var answer *client.Error
		if errors.As(err, &answer) && answer.Status < 500 {
			return err // it will not get better
		}
		fmt.Fprintf(out.err, "%v; trying again\n", err)
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
	return nil // interrupted, which is how following ends
}

func eventTable(out *printer, events []wire.Event) error {
	var rows [][]string
	for _, e := range events {
		rows = append(rows, eventCells(e))
	}
	return out.table("TIME SEQ KIND ABOUT CAUSE ACTOR", rows)
}

func eventCells(e wire.Event) []string {
	about := e.Service
	if e.ID != "" {
		about += "/" + e.ID
	}
	return []string{e.At.String(), number(e.Seq), e.Kind, about, e.Cause, e.Actor}
}

// eventLine prints an event that is followed: columns can't be aligned with what has not come yet.
func eventLine(out *printer, e wire.Event) error {
	if out.json {
		return out.line(e)
	}
	c := eventCells(e)
	_, err := fmt.Fprintf(out.out, "%s  %-6s %-12s %-24s %s  (%s)\n", c[0], c[1], cell(c[2]), cell(c[3]), cell(c[4]), cell(c[5]))
	return err
}
