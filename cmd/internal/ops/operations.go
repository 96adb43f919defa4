package ops

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

func agentLs(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Short: "List the proxies and the topology that each serves", Args: args.None,
		Long: "List the proxies and the topology that each serves, compared with the newest version: current, behind, ahead (the\n" +
			"database was restored), different (same version, other content) or unknown. BEHIND counts the versions in between.\n\n" +
			"All that a proxy says of itself is as old as REPORT-AGE: one that is down, or can't beat, is shown as it was then\n" +
			"(LIVENESS says what the registry holds of it). AGE (how old the version is) and COMMIT-AGE (how long ago the proxy\n" +
			"heard from the leader) are as of now: what it reported and the report's age together. A commit that came since then\n" +
			"is in the next report.",
	}
	limit := limited(cmd, 0)
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, _ []string) error {
		agents, err := collect(cl.AllAgents(ctx, page(*limit)), *limit)
		if err != nil {
			return err
		}
		if out.json {
			return out.value(wire.AgentList{Agents: agents})
		}
		var rows [][]string
		for _, a := range agents {
			rows = append(rows, []string{
				a.Instance.Service + "/" + a.Instance.ID, a.Instance.Address, a.Instance.Zone, a.Instance.Liveness, a.State,
				numberOf(a.Version), numberOf(a.VersionsBehind), shortDigest(a.Digest), spanOf(asOfNow(a.TopologyAge, a)), a.Source, spanOf(asOfNow(a.CommitAge, a)), spanOf(a.ReportAge), a.LastError,
			})
		}
		return out.table("AGENT ADDRESS ZONE LIVENESS TOPOLOGY VERSION BEHIND DIGEST AGE SOURCE COMMIT-AGE REPORT-AGE ERROR", rows)
	})
	return cmd
}

// asOfNow is an age of a report, with the report's own.
func asOfNow(reported *float64, a wire.Agent) *float64 {
	if reported == nil || a.ReportAge == nil {
		return reported
	}
	now := *reported + *a.ReportAge
	return &now
}

func streamLs(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List the partitions of the heartbeat topic", Args: args.None}
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, _ []string) error {
		list, err := cl.Streams(ctx)
		if err != nil {
			return err
		}
		if out.json {
			return out.value(list)
		}
		var rows [][]string
		for _, s := range list.Streams {
			rows = append(rows, []string{
				number(s.Partition), fmt.Sprintf("%.3fs", s.Clock), numberOf(s.NextOffset), number(s.LogEnd), numberOf(s.Lag), span(s.UpdatedAge), s.Owner,
			})
		}
		return out.table("PARTITION CLOCK NEXT-OFFSET LOG-END LAG UPDATED OWNER", rows)
	})
	return cmd
}

func rejectedLs(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Short: "List records that could not be used, newest last, and how many there were for each reason", Args: args.None,
		Long: "List records that could not be used, newest last, and how many there were for each reason. Only the latest are kept;\n" +
			"the counts are also of those before.\n\n" + reasonsText(),
	}
	q := &client.RejectedQuery{}
	f := cmd.Flags()
	f.StringSliceVar(&q.Reasons, "reason", nil, "only records rejected for one of these reasons, see above")
	part := f.Int32("partition", 0, "only records of this partition")
	limit := limited(cmd, 20)
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, _ []string) error {
		query := *q
		query.Page = page(*limit)
		if f.Changed("partition") {
			query.Partition = part
		}
		// The counts come with every page; the first one's are shown.
		first, err := cl.Rejected(ctx, query)
		if err != nil {
			return err
		}
		list := first.Rejected
		if first.NextCursor != "" && (*limit == 0 || *limit > len(list)) {
			query.Cursor = first.NextCursor
			rest, err := collect(cl.AllRejected(ctx, query), max(0, *limit-len(list)))
			if err != nil {
				return err
			}
			list = append(list, rest...)
		}
		slices.Reverse(list)
		if out.json {
			return out.value(wire.RejectedList{Rejected: list, Counts: first.Counts})
		}
		return rejectedTables(out, list, first.Counts)
	})
	return cmd
}

func rejectedTables(out *printer, list []wire.Rejected, counts []wire.ReasonCount) error {
	var rows [][]string
	for _, r := range list {
		rows = append(rows, []string{r.At.String(), fmt.Sprintf("%d@%d", r.Partition, r.Offset), r.Key, r.Reason, r.Detail})
	}
	if err := out.table("TIME PARTITION@OFFSET KEY REASON DETAIL", rows); err != nil {
		return err
	}
	rows = nil
	for _, c := range counts {
		rows = append(rows, []string{c.Reason, number(c.Count)})
	}
	fmt.Fprintln(out.out)
	return out.table("REASON COUNT", rows)
}
