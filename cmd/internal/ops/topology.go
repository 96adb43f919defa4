package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

func topologyVersions(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "versions", Short: "List the topology versions, newest first", Args: args.None}
	limit := limited(cmd, 20)
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, _ []string) error {
		versions, err := collect(cl.AllVersions(ctx, page(*limit)), *limit)
		if err != nil {
			return err
		}
		if out.json {
			return out.value(wire.TopologyVersionList{Versions: versions})
		}
		var rows [][]string
		for _, v := range versions {
			rows = append(rows, []string{
				number(v.Version), number(v.Epoch), v.CreatedAt.String(), number(v.Records), number(v.Changed), number(v.Revision), shortDigest(v.Digest), v.Cause,
			})
		}
		return out.table("VERSION EPOCH CREATED RECORDS CHANGED REVISION DIGEST CAUSE", rows)
	})
	return cmd
}

func shortDigest(digest string) string { return digest[:min(12, len(digest))] }

func topologyShow(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show", Short: "Show the content of a topology version", Args: args.None,
		Long: "Show the content of a topology version: the services with their instances, the upstreams, upstrands and routes.\n" +
			"ORIGIN is derived for what follows from beats alone, and declared for what operators declared.",
	}
	q := &client.TopologyQuery{}
	cmd.Flags().Int64Var(&q.Version, "version", 0, "which version; 0: the newest")
	cmd.Flags().StringVar(&q.Prefix, "prefix", "", "only records whose key begins so: service/NAME, upstream/NAME, upstrand/NAME or route/HOST/PATH")
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, _ []string) error {
		query := *q
		query.Page = page(200)
		t, err := cl.WholeTopology(ctx, query)
		if err != nil {
			return err
		}
		if out.json {
			return out.value(t)
		}
		if err := printTopology(out, t); err != nil || len(t.Content) > 0 || q.Prefix == "" {
			return err
		}
		_, err = fmt.Fprintf(out.out, "\nno key begins with %q: keys are service/NAME, upstream/NAME, upstrand/NAME and route/HOST/PATH\n", q.Prefix)
		return err
	})
	return cmd
}

func printTopology(out *printer, t wire.Topology) error {
	err := out.fields(
		"version", fmt.Sprintf("%d (epoch %d)", t.Version, t.Epoch),
		"created", t.CreatedAt.String(),
		"cause", t.Cause,
		"digest", t.Digest,
		"records", fmt.Sprintf("%d, of which %d shown", t.Records, len(t.Content)),
	)
	kinds := []struct {
		prefix, heads string
		rows          func(wire.TopologyRecord) [][]string
	}{
		{"service/", "SERVICE INSTANCE ADDRESS WEIGHT ZONE VERSION NOTE", serviceRows},
		{"upstream/", "UPSTREAM ORIGIN DIRECTIVES", groupRows},
		{"upstrand/", "UPSTRAND ORIGIN DIRECTIVES", groupRows},
		{"route/", "ROUTE ORIGIN TO", routeRows},
	}
	for _, kind := range kinds {
		var rows [][]string
		for _, r := range t.Content {
			if strings.HasPrefix(r.Key, kind.prefix) {
				rows = append(rows, kind.rows(r)...)
			}
		}
		if len(rows) > 0 && err == nil {
			fmt.Fprintln(out.out)
			err = out.table(kind.heads, rows)
		}
	}
	return err
}

// The records are read with no more than what is shown, and leniently: a newer registry's may have more in them. One
// that can't be read is shown by its key.

func serviceRows(r wire.TopologyRecord) [][]string {
	var s struct {
		Name      string `json:"name"`
		Instances []struct {
			ID, Scheme, Addr, Zone, Version string
			Weight                          int
			Drain, Unproven                 bool
		} `json:"instances"`
	}
	if json.Unmarshal(r.Value, &s) != nil {
		return [][]string{{r.Key, "", "", "", "", "", "can't be read"}}
	}
	if len(s.Instances) == 0 {
		return [][]string{{s.Name, "", "", "", "", "", "no instances"}}
	}
	var rows [][]string
	for _, in := range s.Instances {
		var notes []string
		if in.Drain {
			notes = append(notes, "draining")
		}
		if in.Unproven {
			notes = append(notes, "unproven")
		}
		addr := in.Addr
		if in.Scheme != "" && in.Scheme != "http" {
			addr = in.Scheme + "://" + addr
		}
		rows = append(rows, []string{s.Name, in.ID, addr, number(max(1, in.Weight)), in.Zone, in.Version, strings.Join(notes, ", ")})
	}
	return rows
}

// ownZoneFirst is said of an upstrand whose backups are each proxy's own matter.
const ownZoneFirst = "# a proxy with a zone has that first, the others as backup"

func groupRows(r wire.TopologyRecord) [][]string {
	var g struct {
		Name, Origin string
		Directives   [][]string
		OwnZoneFirst bool `json:"own_zone_first"`
	}
	if json.Unmarshal(r.Value, &g) != nil {
		return [][]string{{r.Key, "", "can't be read"}}
	}
	var lines []string
	for _, d := range g.Directives {
		lines = append(lines, strings.Join(d, " ")+";")
	}
	if g.OwnZoneFirst {
		lines = append(lines, ownZoneFirst)
	}
	return [][]string{{g.Name, g.Origin, strings.Join(lines, " ")}}
}

func routeRows(r wire.TopologyRecord) [][]string {
	var route struct{ Host, Path, Origin, Upstream, Upstrand string }
	if json.Unmarshal(r.Value, &route) != nil {
		return [][]string{{r.Key, "", "can't be read"}}
	}
	to := "upstream " + route.Upstream
	if route.Upstrand != "" {
		to = "upstrand " + route.Upstrand
	}
	return [][]string{{route.Host + route.Path, route.Origin, to}}
}
