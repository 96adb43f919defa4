package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

// listPublished is `upstrand ls --published`.
func listPublished(ctx context.Context, cl *client.Client, q client.UpstrandQuery, out *printer, _ []string) error {
	list, err := cl.Upstrands(ctx, q)
	for err == nil && list.NextCursor != "" {
		var page wire.UpstrandList
		q.Cursor = list.NextCursor
		page, err = cl.Upstrands(ctx, q)
		list.Upstrands, list.NextCursor = append(list.Upstrands, page.Upstrands...), page.NextCursor
	}
	if err != nil {
		return err
	}
	if out.json {
		return out.value(list)
	}
	var rows [][]string
	for _, u := range list.Upstrands {
		var members, blacklisted []string
		for _, m := range u.Members {
			members = append(members, fmt.Sprintf("%s (%d)", memberName(m), m.Usable))
		}
		for _, b := range u.Blacklisted {
			blacklisted = append(blacklisted, b.Upstream+" by "+b.Agent)
		}
		start := u.Start
		if u.OwnZoneFirst {
			start = "own zone first"
		}
		rows = append(rows, []string{u.Name, u.Origin, start, strings.Join(members, ", "), strings.Join(u.Routes, ","), strings.Join(blacklisted, ", ")})
	}
	return out.table("UPSTRAND ORIGIN START UPSTREAMS(USABLE-SERVERS) ROUTES BLACKLISTED", rows)
}

func memberName(m wire.UpstrandMember) string {
	if m.Backup {
		return m.Upstream + " backup"
	}
	return m.Upstream
}

// showPublished is `upstrand show NAME --published`.
func showPublished(ctx context.Context, cl *client.Client, q client.UpstrandQuery, out *printer, names []string) error {
	u, err := cl.Upstrand(ctx, names[0], q)
	if err != nil {
		return err
	}
	if out.json {
		return out.value(u)
	}
	start := startText(u.Start, "")
	if u.Start == wire.StartTurn {
		start = "each request at the next upstream"
	}
	if u.OwnZoneFirst {
		start += "; a proxy's own zone comes first, the others are its backup"
	}
	fields := []string{
		"upstrand", u.Name, "origin", u.Origin, "start", start, "goes on after", goesOn(u.NextStatuses, u.NonIdempotent, u.NextTimeout), "routes", strings.Join(u.Routes, ", "),
	}
	for _, i := range u.Intercepts {
		fields = append(fields, "intercepts", strings.Join(i.Statuses, " ")+" with "+i.URI)
	}
	for _, p := range u.Problems {
		fields = append(fields, "problem", p)
	}
	if err := out.fields(fields...); err != nil {
		return err
	}
	fmt.Fprintln(out.out)
	if err := out.table("UPSTREAM PART INTERVAL SERVER ADDRESS WEIGHT ZONE VERSION NOTE", serversOf(u)); err != nil || len(u.Blacklisted) == 0 {
		return err
	}
	fmt.Fprintln(out.out)
	var rows [][]string
	for _, b := range u.Blacklisted {
		rows = append(rows, []string{b.Upstream, b.Agent, b.Until.String(), span(b.ReportAge)})
	}
	return out.table("BLACKLISTED BY UNTIL REPORT-AGE", rows)
}

func serversOf(u wire.Upstrand) (rows [][]string) {
	for _, m := range u.Members {
		head := []string{m.Upstream, partOf(m.Backup), intervalText(m.Interval)}
		if len(m.Servers) == 0 {
			rows = append(rows, append(head, "", "", "", "", "", "no servers"))
		}
		for _, s := range m.Servers {
			var notes []string
			for _, note := range []struct {
				is   bool
				word string
			}{{s.Backup, "backup"}, {s.Down, "down"}, {s.Draining, "draining"}, {s.Unproven, "unproven"}} {
				if note.is {
					notes = append(notes, note.word)
				}
			}
			rows = append(rows, append(append([]string(nil), head...), s.Server, s.Addr, number(s.Weight), s.Zone, s.Version, strings.Join(notes, ", ")))
		}
	}
	return rows
}
