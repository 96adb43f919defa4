package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/segmentio/kafka-go"
)

// Broker is a Kafka broker that can be taken away and brought back on the same address and data.
type Broker interface {
	Addr() string
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Kill() error
	Pause() error
	Resume() error
	Alive() bool
	Tail(lines int) string
	Close()
}

// Database is a registry's database that can be taken away, brought back, and set back to an older state.
type Database interface {
	Flags(passwordFile string) []string
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Kill() error
	Pause() error
	Resume() error
	Backup(ctx context.Context) (string, error)
	Restore(ctx context.Context, backup string) error
	Close()
}

// Parts says what a world is made of.
type Parts string

// Embedded parts need nothing but Go; real ones need Java, the Kafka jars and MariaDB.
const (
	EmbeddedParts Parts = "embedded"
	RealParts     Parts = "real"
)

// Binaries are the programs under test.
type Binaries struct{ Upstrand, UpstrandDev string }

// Topics that every world uses; worlds have brokers of their own.
const (
	TopicHeartbeat    = "topic_heartbeat"
	TopicUpstreamConf = "topic_upstream_conf"
)

// World is one installation: broker, database and the roles that were started in it.
type World struct {
	Parts    Parts
	Times    Times
	Dir      string
	Broker   Broker
	Database Database
	Kafka    Endpoint  // Broker's address with what it asks of clients
	Topology *Observer // of topic_upstream_conf, from the first record on

	program      string // runs the roles
	passwordFile string
	kafkaFlags   []string
	dbFlags      []string // beside Database.Flags

	stop      context.CancelFunc // of what runs in this process
	running   sync.WaitGroup
	mu        sync.Mutex
	roles     []*Role
	instances []*Instance
	transport *kafka.Transport
	registry  *Role
}

// Options of New.
type Options struct {
	Parts    Parts
	Times    Times
	Binaries Binaries
	Dir      string // empty folder, left as it is by Close, so that logs can be read
	// Secure says how clients reach a broker that wants TLS or a login; nil: plainly at its Addr. The flags are those of the roles.
	Secure func(Broker) (Endpoint, []string)
	// DatabaseFlags come after those of the database.
	DatabaseFlags []string
	// Broker is used instead of a process of upstrand-dev when the parts are embedded.
	Broker  Broker
	Kafka   KafkaOptions
	MariaDB MariaDBOptions
}

// New starts broker and database and runs `migrate`.
func New(ctx context.Context, opt Options) (*World, error) {
	w := &World{Parts: opt.Parts, Times: opt.Times, Dir: opt.Dir, passwordFile: filepath.Join(opt.Dir, "db-password"), dbFlags: opt.DatabaseFlags}
	if err := os.WriteFile(w.passwordFile, []byte(DBPassword+"\n"), 0o600); err != nil {
		return nil, err
	}
	if err := w.startServers(ctx, opt); err != nil {
		w.Close()
		return nil, err
	}
	w.Kafka, w.kafkaFlags = Endpoint{Addr: w.Broker.Addr()}, []string{"--kafka-brokers", w.Broker.Addr()}
	if opt.Secure != nil {
		w.Kafka, w.kafkaFlags = opt.Secure(w.Broker)
	}
	if err := w.Migrate(ctx); err != nil {
		w.Close()
		return nil, err
	}
	local, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	w.transport = w.Kafka.Transport()
	w.Topology = newObserver(w.Kafka, TopicUpstreamConf)
	w.running.Go(func() { w.Topology.run(local) })
	return w, nil
}

func (w *World) startServers(ctx context.Context, opt Options) error {
	brokerDir, dbDir := filepath.Join(opt.Dir, "kafka"), filepath.Join(opt.Dir, "db")
	if err := errors.Join(os.MkdirAll(brokerDir, 0o755), os.MkdirAll(dbDir, 0o755)); err != nil {
		return err
	}
	if opt.Times.Name == "scaled" {
		// A commit is safe over the death of the server, not over that of the machine: the disk is not what scaled tests test.
		opt.MariaDB.Extra = append([]string{"--innodb-flush-log-at-trx-commit=2"}, opt.MariaDB.Extra...)
	}
	if opt.Parts == EmbeddedParts {
		w.program = opt.Binaries.UpstrandDev
		w.Database = NewSQLite(filepath.Join(dbDir, "registry.db"))
		if opt.Broker != nil {
			w.Broker = opt.Broker
			return nil
		}
		broker, err := StartEmbedded(ctx, w.program, brokerDir)
		if broker != nil {
			w.Broker = broker
		}
		return err
	}
	w.program = opt.Binaries.Upstrand
	var wg sync.WaitGroup
	var brokerErr, dbErr error
	wg.Go(func() {
		var broker *Kafka
		if broker, brokerErr = StartKafka(ctx, brokerDir, opt.Kafka); broker != nil {
			w.Broker = broker
		}
	})
	wg.Go(func() {
		var db *MariaDB
		if db, dbErr = StartMariaDB(ctx, dbDir, opt.MariaDB); db != nil {
			w.Database = db
		}
	})
	wg.Wait()
	return errors.Join(brokerErr, dbErr)
}

// Migrate runs the role that makes schema and topics.
func (w *World) Migrate(ctx context.Context) error {
	p := &Proc{Name: "migrate", Path: w.program, Log: filepath.Join(w.Dir, "migrate.log")}
	p.Args = append(append([]string{"migrate", "--log-format", "json"}, w.kafkaFlags...), w.databaseFlags()...)
	if err := p.Start(); err != nil {
		return err
	}
	defer p.Close()
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("rig: migrate did not end: %w\n%s", ctx.Err(), p.Tail(15))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return fmt.Errorf("rig: migrate: %w\n%s", p.err, p.Tail(15))
	}
	return nil
}

func (w *World) databaseFlags() []string {
	return append(w.Database.Flags(w.passwordFile), w.dbFlags...)
}

// Roles returns every role that was started, in that order, running or not.
func (w *World) Roles() []*Role {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*Role(nil), w.roles...)
}

// Close ends everything, newest first. Logs stay in Dir.
func (w *World) Close() {
	w.mu.Lock()
	instances, roles := w.instances, w.roles
	w.mu.Unlock()
	var all sync.WaitGroup
	for _, i := range instances {
		all.Go(i.Crash)
	}
	all.Wait()
	for _, r := range roles {
		r.Close()
	}
	if w.stop != nil {
		w.stop()
		w.running.Wait()
		w.transport.CloseIdleConnections()
	}
	if w.Database != nil {
		w.Database.Close()
	}
	if w.Broker != nil {
		w.Broker.Close()
	}
}

// Program is the binary that runs the roles of this world.
func (w *World) Program() string { return w.program }
