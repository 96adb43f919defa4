package main

import (
	"context"
	"os"
	"slices"

	"github.com/upstrand/upstrand/cmd/internal/admin"
	"github.com/upstrand/upstrand/cmd/internal/cli"
	"github.com/upstrand/upstrand/cmd/internal/demo"
	"github.com/upstrand/upstrand/cmd/internal/embedded"
	"github.com/upstrand/upstrand/cmd/internal/roles"
	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// broker is the embedded broker alone.
func broker() cli.Command {
	return cli.Command{
		Use: "broker [flags]", Short: "the embedded Kafka-protocol broker alone",
		Long: `Runs a broker that speaks Kafka's protocol, for trying out roles as processes of their own without a Kafka. It is one
node without replication, for development and tests only.`,
		Example: `  upstrand-dev broker --listen 127.0.0.1:9092 --data /var/tmp/upstrand-broker &
  upstrand-dev migrate --sqlite /var/tmp/registry.db
  upstrand-dev listener --sqlite /var/tmp/registry.db`,
		Declare: func(set *settings.Set) cli.Start {
			var addr, dir string
			g := set.Group("Broker")
			g.Listen(&addr, "listen", "127.0.0.1:9092", false, "address that clients connect to; the broker tells them this very address")
			g.Dir(&dir, "data", "folder for the broker's state; absent: memory")
			return func(ctx context.Context, p *roles.Process, _ []string) error {
				b, err := embedded.StartBroker(addr, "listen", dir, p.Log)
				if err != nil {
					return err
				}
				p.Group.OnStop("broker", b.Close)
				return p.Run(ctx)
			}
		},
	}
}

// demoService is one HTTP service that does not beat: for `upstrand beat` to speak for it.
func demoService() cli.Command {
	return cli.Command{
		Use: "demo [flags]", Short: "one small HTTP service to balance",
		Long: `Serves one of the demo services alone. It does not beat by itself: run it under upstrand beat, as a service of any
language would be.`,
		Example: `  upstrand-dev beat --service hello --id hello-1 --port 9000 --url /hello/ --check http://127.0.0.1:9000/healthz -- \
    upstrand-dev demo --listen 127.0.0.1:9000 --name hello-1`,
		Declare: func(set *settings.Set) cli.Start {
			var addr, name, kind string
			services := demo.Services()
			kinds := make([]string, len(services))
			for i, s := range services {
				kinds[i] = s.Name
			}
			g := set.Group("Demo service")
			g.Listen(&addr, "listen", "127.0.0.1:9000", false, "address to serve")
			g.String(&name, "name", "", "what it calls itself; absent: the host's name")
			g.Choice(&kind, "kind", kinds[0], "what it does: answers who it is, takes 300 ms, or fails one request in five", kinds...)
			return func(ctx context.Context, p *roles.Process, _ []string) error {
				if name == "" {
					name, _ = os.Hostname()
				}
				ln, err := admin.Listen(addr, "listen", "demo", p.Log)
				if err != nil {
					return err
				}
				service := services[slices.Index(kinds, kind)]
				p.Group.Add("demo", admin.NewServer(ln, service.Handler(name)).Run)
				return p.Run(ctx)
			}
		},
	}
}
