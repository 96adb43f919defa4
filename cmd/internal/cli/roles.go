package cli

import (
	"context"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/cmd/internal/kafkaconn"
	"github.com/upstrand/upstrand/cmd/internal/roles"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/registry"
)

// AddRoles adds the commands of all roles.
func (pr *Program) AddRoles() {
	for _, c := range []Command{
		pr.migrate(), pr.listener(), pr.confgen(), pr.registry(), pr.proxy(), pr.beat(),
	} {
		pr.Root().AddCommand(pr.Cobra(c))
	}
	pr.Root().AddCommand(ready(), version())
}

// withKafka declares the Kafka settings and returns what connects by them at the start of a process.
func withKafka(set *settings.Set, use kafkaconn.Use, client string) (*kafkaconn.Options, func(*roles.Process) (*kafkaconn.Conn, error)) {
	o := &kafkaconn.Options{}
	o.Flags(set)
	o.TopicFlags(set, use)
	return o, func(p *roles.Process) (*kafkaconn.Conn, error) {
		conn, err := o.Connect(client)
		if err != nil {
			return nil, err
		}
		p.Group.OnStop("kafka", func(context.Context) error { conn.Close(); return nil })
		return conn, nil
	}
}

func (pr *Program) migrate() Command {
	return Command{
		Use: "migrate [flags]", Short: "bring the schema up to date and create the topics",
		Long: `Brings the registry's schema up to date and creates the two Kafka topics with the settings that they need; topics that
exist are checked. It waits for the database and for Kafka, does its work and ends. Run it before the roles of a new
release start; running it again, or several at once, does no harm. The database itself must exist, and the user must be
allowed to create tables in it.`,
		Example: `  echo "$PASSWORD" > /run/secrets/db
  ` + pr.Name + ` migrate --kafka-brokers kafka:9092 ` + pr.databaseExample() + `
  ` + pr.Name + ` migrate --topics=false        # the schema alone, where somebody else makes the topics`,
		Declare: func(set *settings.Set) Start {
			m, db := &roles.Migrate{}, pr.Database()
			m.Flags(set)
			k, connect := withKafka(set, kafkaconn.Use{Heartbeat: true, UpstreamConf: true, Create: true}, "upstrand-migrate")
			db.Flags(set)
			return func(ctx context.Context, p *roles.Process, _ []string) error {
				defer p.Abandon()
				conn, err := connect(p)
				if err != nil {
					return err
				}
				store, err := p.OpenStore(db, true, registry.Options{})
				if err != nil {
					return err
				}
				return m.Run(ctx, p, k, conn, store)
			}
		},
	}
}

func (pr *Program) listener() Command {
	return Command{
		Use: "listener [flags]", Short: "take beats from Kafka into the registry, and notice who fell silent",
		Long: `Reads the beats of all services from Kafka, writes what they say into the registry, and notices instances that fell
silent. Run two or more: they share the topic's partitions, and when one dies another takes over its part within the
session timeout. Kafka or the database may be away for any time; nobody is declared dead because of that. It is ready
when it has read all that was waiting for it.`,
		Example: `  ` + pr.Name + ` listener --kafka-brokers kafka-1:9092,kafka-2:9092 ` + pr.databaseExample() + `
  curl -s http://127.0.0.1:8082/readyz`,
		Declare: func(set *settings.Set) Start {
			l, db := &roles.Listener{}, pr.Database()
			l.Flags(set)
			k, connect := withKafka(set, kafkaconn.Use{Heartbeat: true, Create: true}, "upstrand-listener")
			db.Flags(set)
			var addr string
			roles.AdminFlags(set, &addr, "127.0.0.1:8082")
			return serve(&addr, func(p *roles.Process) error {
				conn, err := connect(p)
				if err != nil {
					return err
				}
				store, err := p.OpenStore(db, false, l.StoreOptions())
				if err != nil {
					return err
				}
				l.Join(p, k, conn, store)
				return nil
			})
		},
	}
}

func (pr *Program) registry() Command {
	return Command{
		Use: "registry [flags]", Short: "serve what the registry knows, and take declarations and beats over HTTP",
		Long: `Serves the registry's API: services, instances, proxies, versions of the topology, events; POST /v1/topology, by which
operators declare upstreams, upstrands and routes; and POST /v1/beats for senders that can't speak Kafka. /openapi.json
describes it, and the operators' commands (service, instance, topology, agent, event) use it. Run as many as you like
behind a balancer; no traffic depends on them. It knows no users: let only operators and senders reach it. Health,
readiness and metrics are on the same address.`,
		Example: `  ` + pr.Name + ` registry --listen 127.0.0.1:8090 --kafka-brokers kafka:9092 ` + pr.databaseExample() + `
  curl -s http://127.0.0.1:8090/v1/services`,
		Declare: func(set *settings.Set) Start {
			r, db := &roles.Registry{}, pr.Database()
			r.Flags(set)
			k, connect := withKafka(set, kafkaconn.Use{Heartbeat: true}, "upstrand-registry")
			db.Flags(set)
			return serve(new(string), func(p *roles.Process) error {
				conn, err := connect(p)
				if err != nil {
					return err
				}
				store, err := p.OpenStore(db, false, registry.Options{})
				if err != nil {
					return err
				}
				_, err = r.Join(p, k, conn, store, "listen")
				return err
			})
		},
	}
}

func (pr *Program) confgen() Command {
	return Command{
		Use: "confgen [flags]", Short: "make the topology and publish it to the proxies",
		Long: `Turns what the registry knows into the topology (upstreams, upstrands and routes) and publishes what changed on a Kafka
topic that proxies follow. Run two or more: one leads, the others stand by and take over when it dies. It is ready as
leader and as standby, as long as the database is in reach. Proxies go on with what they have while no confgen runs.`,
		Example: `  ` + pr.Name + ` confgen --kafka-brokers kafka:9092 ` + pr.databaseExample() + `
  curl -s http://127.0.0.1:8083/metrics | grep upstrand_confgen_leader`,
		Declare: func(set *settings.Set) Start {
			c, db := &roles.Confgen{}, pr.Database()
			c.Flags(set)
			k, connect := withKafka(set, kafkaconn.Use{Heartbeat: true, UpstreamConf: true, Create: true}, "upstrand-confgen")
			set.Hide(true, "heartbeat-partitions")
			db.Flags(set)
			var addr string
			roles.AdminFlags(set, &addr, "127.0.0.1:8083")
			return serve(&addr, func(p *roles.Process) error {
				conn, err := connect(p)
				if err != nil {
					return err
				}
				store, err := p.OpenStore(db, false, registry.Options{})
				if err != nil {
					return err
				}
				c.Join(p, k, conn, store)
				return nil
			})
		},
	}
}

func (pr *Program) proxy() Command {
	return Command{
		Use: "proxy [flags]", Short: "forward requests to the instances that live, or as a file says",
		Long: `Takes HTTP requests and forwards each to a live instance of the service that its path belongs to. It follows the
topology on Kafka and needs no database. With a state folder it also starts while Kafka is away, from the last good
topology. It is ready when it has a topology.

With --conf it serves a configuration file in nginx's syntax as it stands, on the addresses of its listen lines, and needs
neither Kafka nor anything else. Where --kafka-brokers is given too, the file's proxy_pass lines may name published
upstreams. SIGHUP, and --watch when a file changes, read it again: open connections and the state of balancing stay, and
a file that can't be used leaves the old one in force. SIGUSR1 opens the access logs anew.

SIGTERM, SIGINT and SIGQUIT end it in good order, a second one at once. SIGUSR2 starts the program anew, as it lies on
disk by then, and lets it take over the sockets; this process ends when that one serves, and goes on when it does not
come to it. It takes sockets from systemd and tells it how it stands (Type=notify).

Its admin address also shows what it serves: /debug/topology, /debug/upstreams, /debug/upstrands (see upstrand upstrand),
and /debug/picks?upstream=NAME or ?upstrand=NAME, which says why each of the last requests went where it did.`,
		Example: `  ` + pr.Name + ` proxy --listen :8080 --kafka-brokers kafka:9092 --zone a --state-dir /var/lib/upstrand
  ` + pr.Name + ` proxy --conf nginx.conf --watch
  curl -s http://127.0.0.1:8081/readyz
  curl -s http://127.0.0.1:8080/orders/`,
		Declare: func(set *settings.Set) Start {
			x := &roles.Proxy{}
			x.Flags(set)
			k, connect := withKafka(set, kafkaconn.Use{Heartbeat: true, UpstreamConf: true}, "upstrand-proxy")
			var addr string
			roles.AdminFlags(set, &addr, "127.0.0.1:8081", "/debug/topology", "/debug/upstreams", "/debug/upstrands", "/debug/picks")
			return replaceable(serve(&addr, func(p *roles.Process) error {
				var conn *kafkaconn.Conn
				if x.Conf == "" || set.Given("kafka-brokers") {
					var err error
					if conn, err = connect(p); err != nil {
						return err
					}
				}
				p.Group.Allow(x.Ends())
				_, err := x.Join(p, k, conn)
				return err
			}))
		},
	}
}

func (pr *Program) beat() Command {
	b := &roles.Beat{}
	return Command{
		Use: "beat [flags] [-- command args…]", Short: "beat for a service of any language, and run it if given its command",
		Long: `Checks a service and beats for it while it is well, so that a service of any language takes part without a line of code.
Given a command after --, it also runs the service: signals are passed on, goodbye is said before the service is told to
end and when it dies, and the exit code is the service's. When the check fails it says goodbye, and begins anew when the
check succeeds again. One beat process for each instance.

The service never outlives its beat process: when that is killed (kill -9, out of memory) the kernel kills the service
too, on Linux, so that nothing serves that nobody beats for. Run the two apart, without --, to keep them independent.`,
		Example: `  ` + pr.Name + ` beat --service orders --port 9000 --url /orders/ --check http://127.0.0.1:9000/healthz
  ` + pr.Name + ` beat --service orders --port 9000 --url /orders/ --kafka-brokers kafka:9092 -- ./orders --listen :9000`,
		Args: args.AfterDashes, Arguments: b.Arguments,
		Declare: func(set *settings.Set) Start {
			b.Flags(set)
			k, connect := withKafka(set, kafkaconn.Use{Heartbeat: true}, "upstrand-beat")
			var addr string
			roles.AdminFlags(set, &addr, "")
			return func(ctx context.Context, p *roles.Process, command []string) error {
				// With a child, further signals are the child's: it decides how fast it ends.
				pr.patient.Store(len(command) > 0)
				conn, err := connect(p)
				if err == nil {
					err = p.Admin(addr)
				}
				if err != nil {
					p.Abandon()
					return err
				}
				code, err := b.Run(ctx, p, k, conn, command)
				if code != 0 {
					return &ExitError{Code: code, Err: err}
				}
				return err
			}
		},
	}
}

// serve is the Start of a role that runs until it is told to end: join adds the role to the process.
func serve(adminAddr *string, join func(*roles.Process) error) Start {
	return func(ctx context.Context, p *roles.Process, _ []string) error {
		if err := p.Admin(*adminAddr); err != nil {
			p.Abandon()
			return err
		}
		if err := join(p); err != nil {
			p.Abandon()
			return err
		}
		return p.Run(ctx)
	}
}

// replaceable lets another process take the place of the one that start runs, and that one take another's.
func replaceable(start Start) Start {
	return func(ctx context.Context, p *roles.Process, args []string) error {
		if err := p.Inherit(); err != nil {
			return err
		}
		return start(ctx, p, args)
	}
}

// databaseExample is how examples name the database.
func (pr *Program) databaseExample() string {
	if pr.Database().Dialect() == registry.SQLite {
		return "--sqlite registry.db"
	}
	return "--mysql-addr db:3306 --mysql-password-file /run/secrets/db"
}
