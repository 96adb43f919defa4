package ops

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/registry/client"
)

const findUpstrand = "upstrand upstrand ls lists them"

// upstrands is the group that asks a proxy, since blacklists and cursors are each proxy's own.
func upstrands() *cobra.Command {
	g := group("upstrand", "Show upstrands with their blacklists, and reset those")
	g.Long = "Show upstrands and what a proxy remembers of them: where the next request begins, what is blacklisted, how requests went\n" +
		"on from upstream to upstream. That is each proxy's own, so its admin address is asked (--admin). With --published the\n" +
		"registry is asked instead: what was published, with the servers of each upstream, and what any proxy has blacklisted."
	c := &common{}
	g.ResetFlags()
	var admin string
	f := g.PersistentFlags()
	adminFlag(f, &admin)
	f.StringVar(&c.registry, "registry", DefaultRegistry, "URL of the registry, or its host:port, for --published")
	f.StringVarP(&c.output, "output", "o", "table", "what to print: table or json")
	for _, cmd := range []*cobra.Command{upstrandLs(c, &admin), upstrandShow(c, &admin), upstrandReset(c, &admin)} {
		cmd.LocalNonPersistentFlags().VisitAll(noEnv)
		g.AddCommand(cmd)
	}
	return g
}

const (
	pageUpstrands = "/debug/upstrands"
	pageReset     = "/debug/upstrands/reset"
)

// publishedFlags declares --published and --zone.
func publishedFlags(cmd *cobra.Command, published *bool, zone *string) {
	cmd.Flags().BoolVar(published, "published", false, "what the registry says: the newest topology version, and the blacklists of all proxies as they last reported")
	cmd.Flags().StringVar(zone, "zone", "", "with --published: as a proxy of this zone walks them")
}

// publishedOr gives a command its two ways.
func publishedOr(
	c *common, admin *string, published *bool, zone *string, registry func(ctx context.Context, cl *client.Client, q client.UpstrandQuery, out *printer, args []string) error,
	port func(ctx context.Context, at adminPort, out *printer, args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		given := cmd.Flags().Changed("zone")
		if !*published {
			if given {
				return fmt.Errorf("--zone %q: only with --published; a proxy has its own zone", *zone)
			}
			return asked(c, admin, port)(cmd, args)
		}
		return c.do(func(ctx context.Context, cl *client.Client, out *printer, args []string) error {
			q := client.UpstrandQuery{Page: page(0)}
			if given {
				q.Zone = zone
			}
			return registry(ctx, cl, q, out, args)
		})(cmd, args)
	}
}

func upstrandLs(c *common, admin *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Short: "List upstrands", Args: args.None,
		Long: "List the upstrands of a proxy. NEXT is the upstream where the next request begins, unless it is blacklisted; STOPS and\n" +
			"JUMPS count how often requests stopped at an upstream, and went on to another one; counts are since the proxy started.",
		Example: "  upstrand upstrand ls\n  upstrand upstrand ls --admin edge-1:8081\n  upstrand upstrand ls --published",
	}
	var published bool
	var zone string
	publishedFlags(cmd, &published, &zone)
	cmd.RunE = publishedOr(c, admin, &published, &zone, listPublished, func(ctx context.Context, at adminPort, out *printer, _ []string) error {
		var list []proxy.UpstrandPage
		if err := at.call(ctx, http.MethodGet, pageUpstrands, nil, &list); err != nil {
			return err
		}
		if out.json {
			return out.value(list)
		}
		var rows [][]string
		for _, u := range list {
			rows = append(rows, []string{
				u.Name, u.Origin, u.Start, u.Cursor, upstreamsOf(u.Members), blacklistedOf(u.Members), number(int64(u.Walks)), number(int64(u.Stops)),
				causes(u.Jumps), number(int64(u.Intercepted)),
			})
		}
		return out.table("UPSTRAND ORIGIN START NEXT UPSTREAMS BLACKLISTED WALKS STOPS JUMPS INTERCEPTED", rows)
	})
	return cmd
}

// upstreamsOf is the way of a request: a,b and behind a bar the backup.
func upstreamsOf(members []proxy.MemberPage) string {
	lists := map[bool][]string{}
	for _, m := range members {
		lists[m.Backup] = append(lists[m.Backup], m.Upstream)
	}
	text := strings.Join(lists[false], ",")
	if len(lists[true]) > 0 {
		text += " | " + strings.Join(lists[true], ",")
	}
	return text
}

// blacklistedOf is the blacklist with how long each is still on it.
func blacklistedOf(members []proxy.MemberPage) string {
	var words []string
	for _, m := range members {
		if m.BlacklistedUntil != nil {
			words = append(words, m.Upstream+" ("+span(m.BlacklistedFor)+")")
		}
	}
	return strings.Join(words, ", ")
}

// causes is counts by what they are of: error 3, 5xx 1.
func causes(counts map[string]uint64) string {
	var words []string
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s %d", cause, counts[cause]))
	}
	return strings.Join(words, ", ")
}

func upstrandShow(c *common, admin *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show an upstrand and its upstreams", Args: args.One("NAME", findUpstrand),
		Long: "Show an upstrand of a proxy, its upstreams in the order in which a request of now would go. How single requests went, and\n" +
			"why, its admin address shows: /debug/picks?upstrand=NAME.",
		Example: "  upstrand upstrand show orders\n  upstrand upstrand show orders --published --zone a",
	}
	var published bool
	var zone string
	publishedFlags(cmd, &published, &zone)
	cmd.RunE = publishedOr(c, admin, &published, &zone, showPublished, func(ctx context.Context, at adminPort, out *printer, names []string) error {
		var list []proxy.UpstrandPage
		if err := at.call(ctx, http.MethodGet, pageUpstrands, url.Values{"name": names}, &list); err != nil {
			return err
		}
		if len(list) != 1 {
			return fmt.Errorf("no upstrand %s", cell(names[0]))
		}
		if out.json {
			return out.value(list[0])
		}
		return showUpstrand(out, list[0])
	})
	return cmd
}

func showUpstrand(out *printer, u proxy.UpstrandPage) error {
	fields := []string{"upstrand", u.Name, "origin", u.Origin, "start", startText(u.Start, u.Cursor), "goes on after", goesOn(u.NextStatuses, u.NonIdempotent, u.NextTimeout)}
	for _, i := range u.Intercepts {
		fields = append(fields, "intercepts", strings.Join(i.Statuses, " ")+" with "+i.URI)
	}
	mean := ""
	if ended := sum(u.Ended); ended > 0 {
		mean = fmt.Sprintf(", %.1f ms each", 1000*u.WalkSeconds/float64(ended))
	}
	fields = append(fields,
		"walks", fmt.Sprintf("%d, %d stops%s", u.Walks, u.Stops, mean), "jumps", causes(u.Jumps), "ended", causes(u.Ended), "intercepted", number(int64(u.Intercepted)))
	if u.AllBlacklisted > 0 {
		fields = append(fields, "all blacklisted", fmt.Sprintf("%d times: all were taken off the list then", u.AllBlacklisted))
	}
	if err := out.fields(fields...); err != nil {
		return err
	}
	fmt.Fprintln(out.out)
	var rows [][]string
	for _, m := range u.Members {
		state := ""
		if m.BlacklistedUntil != nil {
			state = fmt.Sprintf("until %s (%s)", m.BlacklistedUntil.UTC().Format("15:04:05"), span(m.BlacklistedFor))
		}
		rows = append(rows, []string{
			m.Upstream, partOf(m.Backup), fmt.Sprintf("%d/%d", m.Eligible, m.Peers), intervalText(m.Interval), state, number(int64(m.Stops)), causes(m.Jumps),
		})
	}
	return out.table("UPSTREAM PART ELIGIBLE INTERVAL BLACKLISTED STOPS JUMPS", rows)
}

func sum(counts map[string]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func partOf(backup bool) string {
	if backup {
		return "backup"
	}
	return "main"
}

func intervalText(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return span(seconds)
}

// startText says where walks begin; next may be empty.
func startText(start, next string) string {
	switch {
	case start == "random":
		return "each request at a random upstream"
	case start == "first":
		return "each request at the first upstream"
	case next == "":
		return "the first request at a random upstream, each other one at the next"
	}
	return "each request at the next upstream; now " + next
}

// goesOn is after what another upstream is asked.
func goesOn(statuses []string, nonIdempotent bool, timeout float64) string {
	if len(statuses) == 0 {
		return "nothing: there is one stop"
	}
	text := strings.Join(statuses, " ")
	if nonIdempotent {
		text += ", also for POST, LOCK and PATCH"
	}
	if timeout > 0 {
		text += ", for " + span(timeout)
	}
	return text
}

func upstrandReset(c *common, admin *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reset NAME", Short: "Empty an upstrand's blacklist", Args: args.One("NAME", findUpstrand),
		Long: "Take all upstreams of an upstrand off the blacklist of a proxy, and let the next request begin at the first; or take off\n" +
			"one of them. It comes back with its next listed result.",
		Example: "  upstrand upstrand reset orders\n  upstrand upstrand reset orders --upstream orders@a --admin edge-1:8081",
	}
	upstream := cmd.Flags().String("upstream", "", "only this one")
	cmd.RunE = asked(c, admin, func(ctx context.Context, at adminPort, out *printer, names []string) error {
		q := url.Values{"name": names}
		if *upstream != "" {
			q.Set("upstream", *upstream)
		}
		var done proxy.ResetPage
		if err := at.call(ctx, http.MethodPost, pageReset, q, &done); err != nil {
			return err
		}
		switch {
		case out.json:
			return out.value(done)
		case done.Upstream == "":
			fmt.Fprintf(out.out, "%s: %s taken off the blacklist; the next request begins anew\n", cell(done.Upstrand), counted(done.Cleared, "upstream"))
		case done.Cleared == 0:
			fmt.Fprintf(out.out, "%s: %s was not blacklisted\n", cell(done.Upstrand), cell(done.Upstream))
		default:
			fmt.Fprintf(out.out, "%s: %s taken off the blacklist\n", cell(done.Upstrand), cell(done.Upstream))
		}
		return nil
	})
	return cmd
}
