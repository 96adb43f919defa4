// Package ops is the operators' commands: they ask a registry's HTTP API, or a proxy's admin address, and print what it says,
// as tables or JSON.
//
// They change nothing but what is declared and what a proxy remembers of upstrands, and need no access to Kafka or the
// database.
package ops

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/registry/client"
)

// DefaultRegistry is where the commands look for the registry.
const DefaultRegistry = "http://127.0.0.1:8090"

// Commands are the operators' commands, each with its subcommands. Only --registry, --admin and --output take their
// values from the environment: the filters carry settings.NoEnv. Those of topology have others beside them that ask no registry.
func Commands(topology ...*cobra.Command) []*cobra.Command {
	all := []*cobra.Command{
		group("service", "Show the services that the registry knows", serviceLs, serviceShow),
		group("instance", "Show the instances of services", instanceLs, instanceShow),
		group("topology", "Show what was published to the proxies", topologyShow, topologyVersions, topologyApply, topologyDeclared),
		upstrands(),
		group("agent", "Show the proxies and the topology that each serves", agentLs),
		group("event", "Show what happened, or follow it", eventLs),
		group("stream", "Show the partitions of the heartbeat topic: clocks, lag, owners", streamLs),
		group("rejected", "Show records of the heartbeat topic that could not be used", rejectedLs),
	}
	for _, cmd := range all {
		if cmd.Name() == "topology" {
			cmd.Short = "Show what was published to the proxies, declare parts of it, check a configuration file"
			cmd.AddCommand(topology...)
		}
	}
	return all
}

// common are the settings of every command.
type common struct {
	registry string
	output   string
}

func group(name, short string, commands ...func(*common) *cobra.Command) *cobra.Command {
	c := &common{}
	g := &cobra.Command{Use: name, Short: short, Args: args.Command, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	f := g.PersistentFlags()
	f.StringVar(&c.registry, "registry", DefaultRegistry, "URL of the registry, or its host:port")
	f.StringVarP(&c.output, "output", "o", "table", "what to print: table or json")
	for _, make := range commands {
		sub := make(c)
		sub.LocalNonPersistentFlags().VisitAll(noEnv)
		g.AddCommand(sub)
	}
	return g
}

// noEnv keeps the environment of a role on the same host, such as UPSTRAND_ZONE, from narrowing what is shown.
func noEnv(f *pflag.Flag) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[settings.NoEnv] = nil
}

// run is a command's work, given a client and a printer.
type run func(ctx context.Context, c *client.Client, out *printer, args []string) error

// do makes run a cobra function.
func (c *common) do(work run) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true // the errors say what would be right
		out, err := c.printer(cmd)
		if err != nil {
			return err
		}
		cl, err := client.New(client.Config{Base: settings.WithScheme(c.registry)})
		if err != nil {
			return fmt.Errorf("--registry (%s) is %q: want http://HOST:PORT or https://HOST:PORT", settings.EnvName("registry"), c.registry)
		}
		return explain(cmd, work(cmd.Context(), cl, out, args))
	}
}

// printer is what the command prints with.
func (c *common) printer(cmd *cobra.Command) (*printer, error) {
	if c.output != "table" && c.output != "json" {
		return nil, fmt.Errorf("--output %q: want table or json", c.output)
	}
	return &printer{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), json: c.output == "json"}, nil
}

// collect takes up to limit items, all for 0.
func collect[T any](items iter.Seq2[T, error], limit int) ([]T, error) {
	list := []T{}
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		list = append(list, item)
		if len(list) == limit {
			break
		}
	}
	return list, nil
}

// page is the size of the pages to ask for when limit rows are wanted.
func page(limit int) client.Page {
	if limit <= 0 || limit > 1000 {
		limit = 1000
	}
	return client.Page{Limit: limit}
}

// instanceName reads SERVICE/ID, or SERVICE and ID.
func instanceName(args []string) (service, id string, err error) {
	if len(args) == 2 {
		return args[0], args[1], nil
	}
	service, id, ok := strings.Cut(args[0], "/")
	if !ok || service == "" || id == "" {
		return "", "", errors.New("want SERVICE/ID, such as orders/a7 (upstrand instance ls lists them)")
	}
	return service, id, nil
}
