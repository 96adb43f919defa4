package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/admin"
	"github.com/upstrand/upstrand/cmd/internal/cli"
	"github.com/upstrand/upstrand/cmd/internal/demo"
	"github.com/upstrand/upstrand/cmd/internal/embedded"
	"github.com/upstrand/upstrand/cmd/internal/kafkaconn"
	"github.com/upstrand/upstrand/cmd/internal/roles"
	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// ends is what the end of all parts may take together: a person waits.
const ends = 4500 * time.Millisecond

// litter is the temporary folder of this process, for an end in a hurry.
type litter struct{ dir atomic.Pointer[string] }

func (l *litter) remove() {
	if dir := l.dir.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
}

// all is the settings of everything in one process.
type all struct {
	data         string
	brokerListen string
	adminListen  string
	demoListen   string
	beatInterval time.Duration
	litter       *litter

	kafka    kafkaconn.Options
	listener roles.Listener
	confgen  roles.Confgen
	registry roles.Registry
	proxy    roles.Proxy
}

// everything is the command without a subcommand.
func everything(pr *cli.Program, l *litter) *cobra.Command {
	return pr.Cobra(cli.Command{
		Use: "upstrand-dev [flags]", Short: "Upstrand without anything to install", Deadline: ends, LogLevel: "warn",
		Long: `Runs all of Upstrand in one process, with the very code of production: an embedded Kafka-protocol broker, an embedded
registry (SQLite), listener, confgen, registry API, a proxy, and three demo services with three instances each that
beat like any service. Within a few seconds it prints what runs where, and curl lines to paste. Ctrl-C ends it: open
requests have 1.5 s, and every instance says goodbye. A second Ctrl-C ends it at once. The commands below run the roles as
processes of their own.`,
		Example: `  upstrand-dev
  upstrand-dev --data ./state              # keep broker and registry over restarts
  upstrand-dev --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --registry-listen 127.0.0.1:0 --broker-listen 127.0.0.1:0`,
		Declare: func(set *settings.Set) cli.Start {
			a := &all{litter: l}
			a.flags(set)
			return func(ctx context.Context, p *roles.Process, _ []string) error {
				if err := a.build(ctx, p, pr); err != nil {
					p.Abandon()
					return err
				}
				return p.Run(ctx)
			}
		},
	})
}

func (a *all) flags(set *settings.Set) {
	g := set.Group("Where")
	g.Listen(&a.proxy.Listen, "listen", "127.0.0.1:8080", false, "address of the proxy, for traffic")
	g.Listen(&a.adminListen, "admin-listen", "127.0.0.1:8081", false, "address for /healthz, /readyz, /metrics and /debug/ of the whole process")
	g.Listen(&a.registry.Listen, "registry-listen", "127.0.0.1:8090", false, "address of the registry's API")
	g.Listen(&a.brokerListen, "broker-listen", "127.0.0.1:9092", false, "address of the embedded broker")
	g.Listen(&a.demoListen, "demo-listen", "127.0.0.1:8091", false, "address to stop, kill and start demo instances at")
	g.Dir(&a.data, "data", "folder for the state of broker and registry; absent: a temporary one that is removed at the end")
	g = set.Group("How")
	g.Duration(&a.beatInterval, "beat-interval", 2*time.Second, 200*time.Millisecond, time.Minute,
		"how often the demo instances beat; one that is killed is out after three times that")
	g.Choice(&a.proxy.Zone, "zone", "", "zone of the proxy: it prefers the demo instances there; absent: all alike", "a", "b")
	a.defaults()
}

// defaults gives the roles what their commands have by default.
func (a *all) defaults() {
	scratch := settings.NewSet(pflag.NewFlagSet("defaults", pflag.ContinueOnError))
	a.listener.Flags(scratch)
	a.confgen.Flags(scratch)
	a.kafka.Flags(scratch)
	a.kafka.TopicFlags(scratch, kafkaconn.Use{Heartbeat: true, UpstreamConf: true, Create: true})
	a.proxy.TopicWait, a.proxy.DrainTimeout = 3*time.Second, 1500*time.Millisecond
}

// build puts all parts together, in the order of who needs whom: the end goes the other way.
func (a *all) build(ctx context.Context, p *roles.Process, pr *cli.Program) error {
	dir, err := a.folder(p)
	if err != nil {
		return err
	}
	brokerDir := ""
	if a.data != "" {
		brokerDir = filepath.Join(dir, "broker")
	}
	b, err := embedded.StartBroker(a.brokerListen, "broker-listen", brokerDir, p.Log)
	if err != nil {
		return err
	}
	p.Group.OnStop("broker", b.Close)
	if err := p.Admin(a.adminListen); err != nil {
		return err
	}
	a.kafka.Brokers = []string{b.Addr()}
	conn, err := a.kafka.Connect("upstrand-dev")
	if err != nil {
		return err
	}
	p.Group.OnStop("kafka", func(context.Context) error { conn.Close(); return nil })
	store, err := p.OpenStore(&embedded.SQLite{File: filepath.Join(dir, "registry.db")}, true, a.listener.StoreOptions())
	if err != nil {
		return err
	}
	migrate := roles.Migrate{Topics: true, Wait: 30 * time.Second}
	if err := migrate.Run(ctx, p, &a.kafka, conn, store); err != nil {
		return err
	}
	return a.join(p, pr, conn, store, filepath.Join(dir, "proxy"))
}

// join adds the roles and the demo.
func (a *all) join(p *roles.Process, pr *cli.Program, conn *kafkaconn.Conn, store *roles.Store, stateDir string) error {
	a.listener.Join(p, &a.kafka, conn, store)
	a.confgen.Join(p, &a.kafka, conn, store)
	registryAddr, err := a.registry.Join(p, &a.kafka, conn, store, "registry-listen")
	if err != nil {
		return err
	}
	a.proxy.StateDir, a.proxy.BeatInterval = stateDir, a.beatInterval
	proxyAddr, err := a.proxy.Join(p, &a.kafka, conn)
	if err != nil {
		return err
	}
	services := demo.Services()
	fleet := demo.NewFleet(services, demo.Beats{
		Brokers: conn.Brokers, Transport: conn.Transport, Topic: a.kafka.TopicHeartbeat, Interval: a.beatInterval,
	}, p.Log)
	p.Group.Add("demo services", fleet.Run)
	control, err := admin.Listen(a.demoListen, "demo-listen", "demo control", p.Log)
	if err != nil {
		return err
	}
	p.Group.Add("demo control", admin.NewServer(control, fleet.Control()).Run)
	tour := tour{
		proxy: proxyAddr, registry: registryAddr, admin: p.AdminAddr(), broker: conn.Brokers[0], demo: control.Addr().String(),
		services: services, interval: a.beatInterval, data: a.data, zone: a.proxy.Zone, out: pr.Stdout, ready: p.Ready.Err,
	}
	p.Group.Add("tour", tour.run)
	return nil
}

// folder is where the state goes. A temporary one is removed last.
func (a *all) folder(p *roles.Process) (string, error) {
	if a.data != "" {
		if err := os.MkdirAll(a.data, 0o755); err != nil {
			return "", fmt.Errorf("make the folder of --data: %w", err)
		}
		return a.data, nil
	}
	dir, err := os.MkdirTemp("", "upstrand-dev-")
	if err != nil {
		return "", errors.Join(errors.New("make a temporary folder"), err)
	}
	a.litter.dir.Store(&dir)
	p.Group.OnStop("temporary folder", func(context.Context) error { return os.RemoveAll(dir) })
	return dir, nil
}
