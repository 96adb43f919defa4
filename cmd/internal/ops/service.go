package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

func serviceLs(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List services", Args: args.None}
	prefix := cmd.Flags().String("prefix", "", "only services whose name begins so")
	state := cmd.Flags().String("state", "", "only services in this state: serving, draining or empty")
	limit := limited(cmd, 0)
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, _ []string) error {
		services, err := collect(cl.AllServices(ctx, client.ServiceQuery{Prefix: *prefix, State: *state, Page: page(*limit)}), *limit)
		if err != nil {
			return err
		}
		if out.json {
			return out.value(wire.ServiceList{Services: services})
		}
		var rows [][]string
		for _, s := range services {
			n := s.Instances
			rows = append(rows, []string{
				s.Name, s.State, number(n.Routable), number(n.Unproven), number(n.Draining), number(n.Total - n.Routable),
				groupNames(s.Zones), groupNames(s.Versions), strings.Join(s.URLs, ","),
			})
		}
		return out.table("SERVICE STATE ROUTABLE UNPROVEN DRAINING GONE ZONES VERSIONS URLS", rows)
	})
	return cmd
}

func serviceShow(c *common) *cobra.Command {
	cmd := &cobra.Command{Use: "show SERVICE", Short: "Show a service and its instances", Args: args.One("SERVICE", "upstrand service ls lists them")}
	cmd.RunE = c.do(func(ctx context.Context, cl *client.Client, out *printer, names []string) error {
		s, err := cl.Service(ctx, names[0])
		if err != nil {
			return err
		}
		if out.json {
			return out.value(s)
		}
		instances, err := collect(cl.AllInstances(ctx, client.InstanceQuery{Services: names, Page: page(0)}), 0)
		if err != nil {
			return err
		}
		if err := out.fields(serviceFields(s)...); err != nil {
			return err
		}
		fmt.Fprintln(out.out)
		return instanceTable(out, instances)
	})
	return cmd
}

func serviceFields(s wire.Service) []string {
	n := s.Instances
	fields := []string{
		"service", s.Name,
		"state", s.State,
		"instances", fmt.Sprintf("%d routable (%d live, %d unproven; %d draining), %d gone (%d stale, %d left, %d superseded)",
			n.Routable, n.Live, n.Unproven, n.Draining, n.Total-n.Routable, n.Stale, n.Left, n.Superseded),
		"zones", groupCounts(s.Zones),
		"versions", groupCounts(s.Versions),
		"urls", strings.Join(s.URLs, ", "),
	}
	if len(s.Refused) > 0 {
		fields = append(fields, "refused", refusedURLs(s.Refused))
	}
	fields = append(fields, "created", s.CreatedAt.String())
	if s.EmptiedAt != nil {
		fields = append(fields, "empty since", s.EmptiedAt.String())
	}
	return fields
}

// refusedURLs says which paths the service asks for in vain, and who has them.
func refusedURLs(refused []wire.RefusedURL) string {
	var said []string
	for _, r := range refused {
		said = append(said, refusedURL(r))
	}
	return strings.Join(said, ", ")
}

func refusedURL(r wire.RefusedURL) string { return r.Path + " belongs to " + r.Owner }

// groupNames are the groups that have routable instances; a group without a name does not show.
func groupNames(groups []wire.Group) string {
	var names []string
	for _, g := range groups {
		if g.Name != "" && g.Routable > 0 {
			names = append(names, g.Name)
		}
	}
	return strings.Join(names, ",")
}

func groupCounts(groups []wire.Group) string {
	var counts []string
	for _, g := range groups {
		name := g.Name
		if name == "" {
			name = "(none)"
		}
		counts = append(counts, fmt.Sprintf("%s: %d of %d routable", name, g.Routable, g.Total))
	}
	return strings.Join(counts, ", ")
}
