package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

func instanceLs(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls [SERVICE...]", Short: "List instances",
		Long: "List instances, of the given services or of all.\n\n" +
			"AGE is the time since the last beat on the clock of the instance's partition, beside the age at which it is stale;\n" +
			"that clock stands still while the pipeline from Kafka to the database does. SKEW is how far the sender's clock is\n" +
			"behind the listener's.",
	}
	q := &client.InstanceQuery{}
	f := cmd.Flags()
	zone := f.String("zone", "", `only instances of the zone; --zone "" for those that name none`)
	version := f.String("version", "", `only instances of the version; --version "" for those that name none`)
	f.StringSliceVar(&q.Services, "service", nil, "only instances of these services")
	f.StringSliceVar(&q.Tags, "tag", nil, "only instances with all these tags")
	f.StringSliceVar(&q.Status, "status", nil, "only instances that say one of these: up, draining, leaving")
	f.StringSliceVar(&q.Liveness, "liveness", nil, "only instances that are one of these: live, unproven, stale, left, superseded")
	limit := limited(cmd, 0)
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, args []string) error {
		query := *q
		query.Services = append(slices.Clone(q.Services), args...)
		if f.Changed("zone") {
			query.Zone = zone
		}
		if f.Changed("version") {
			query.Version = version
		}
		query.Page = page(*limit)
		instances, err := collect(cl.AllInstances(ctx, query), *limit)
		if err != nil {
			return err
		}
		if out.json {
			return out.value(wire.InstanceList{Instances: instances})
		}
		return instanceTable(out, instances)
	})
	return cmd
}

func instanceTable(out *printer, instances []wire.Instance) error {
	var rows [][]string
	for _, in := range instances {
		rows = append(rows, []string{
			in.Service + "/" + in.ID, in.Address, in.Liveness, in.Status, ageOf(in), number(in.Weight), in.Zone, in.Version,
			skew(in.SkewMS), in.Cause,
		})
	}
	return out.table("INSTANCE ADDRESS LIVENESS STATUS AGE WEIGHT ZONE VERSION SKEW CAUSE", rows)
}

func ageOf(in wire.Instance) string {
	if in.Age == nil {
		return ""
	}
	return span(*in.Age) + "/" + span(in.Limit)
}

func instanceShow(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "show SERVICE/ID", Short: "Show all that is known of an instance", Args: args.Some("SERVICE/ID", "upstrand instance ls lists them", 2)}
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, names []string) error {
		service, id, err := instanceName(names)
		if err != nil {
			return err
		}
		in, err := cl.Instance(ctx, service, id)
		if err != nil {
			return err
		}
		if out.json {
			return out.value(in)
		}
		return out.fields(instanceFields(in)...)
	})
	return cmd
}

func instanceFields(in wire.Instance) []string {
	fields := []string{
		"instance", in.Service + "/" + in.ID,
		"address", in.Scheme + "://" + in.Address,
		"url", in.URL,
		"liveness", in.Liveness,
		"status", in.Status,
		"routable", yesNo(in.Routable),
		"cause", in.Cause,
		"age", fmt.Sprintf("%s of stream time since the last beat; stale after %s", orDash(spanOf(in.Age)), span(in.Limit)),
	}
	if in.RefusedURL != nil {
		fields = append(fields, "refused", refusedURL(*in.RefusedURL)+": no traffic by that path")
	}
	if in.UnprovenFor != nil {
		fields = append(fields, "unproven", "for "+span(*in.UnprovenFor)+" of stream time")
	}
	if in.LastBeatAt != nil {
		fields = append(fields, "last beat", fmt.Sprintf("%s, seq %d of incarnation %d, partition %s at clock %s",
			in.LastBeatAt, in.Seq, in.Incarnation, numberOf(in.Partition), spanOf(in.Clock)))
	}
	fields = append(fields,
		"interval", span(in.Interval),
		"skew", skew(in.SkewMS),
		"weight", number(in.Weight),
		"limits", fmt.Sprintf("max_conns %d, max_fails %d, fail_timeout %s, slow_start %s", in.MaxConns, in.MaxFails, span(in.FailTimeout), span(in.SlowStart)),
		"zone", in.Zone,
		"version", in.Version,
		"tags", strings.Join(in.Tags, ", "),
		"meta", metaText(in.Meta),
	)
	if l := in.Load; l != nil {
		fields = append(fields, "load", fmt.Sprintf("in flight %d, %g requests/s, latency %g ms, cpu %g %%, memory %d MiB",
			l.InFlight, l.RPS, l.LatencyMS, l.CPU*100, l.Memory>>20))
	}
	return append(fields, "first seen", in.CreatedAt.String(), "changed", fmt.Sprintf("%s, revision %d", in.ChangedAt, in.Revision))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func metaText(meta map[string]string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		pairs = append(pairs, k+"="+meta[k])
	}
	return strings.Join(pairs, ", ")
}
