package ops

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

func eventLs(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Short: "List events, newest last, or follow them", Args: args.None,
		Long: "List events, newest last. With --follow go on with those that come, until interrupted; as JSON that is one event a\n" +
			"line. While the registry can't be reached, --follow says so and tries again; no event is left out.\n\n" + kindsText(),
	}
	q := &client.EventQuery{}
	f := cmd.Flags()
	f.StringVar(&q.Service, "service", "", "only events of this service (one)")
	f.StringVar(&q.ID, "id", "", "only events of instances with this id")
	f.StringSliceVar(&q.Kinds, "kind", nil, "only events of these kinds, see above")
	since := new(time.Duration)
	f.Var((*ago)(since), "since", "only events of the time since then, such as 15m; 0: any time")
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
	f := &follower{out: out, seen: first.LastSeq}
	if err := f.begin(events); err != nil {
		return err
	}
	q.After, q.Cursor, q.Since = &first.LastSeq, "", time.Time{}
	return f.follow(ctx, cl, q)
}

const eventHeads = "TIME SEQ KIND ABOUT CAUSE ACTOR"

func eventTable(out *printer, events []wire.Event) error {
	var rows [][]string
	for _, e := range events {
		rows = append(rows, eventCells(e))
	}
	return out.table(eventHeads, rows)
}

func eventCells(e wire.Event) []string {
	about := e.Service
	if e.ID != "" {
		about += "/" + e.ID
	}
	return []string{e.At.String(), number(e.Seq), e.Kind, about, e.Cause, e.Actor}
}
