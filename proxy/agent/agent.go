package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy"
)

// Applier puts a topology in force. An error means that the last one stays.
type Applier interface {
	Apply(*topology.Topology) error
}

// Config is an agent's settings. Brokers, Topic and Applier are required; a zero time means its default.
type Config struct {
	Brokers   []string           // host:port
	Dialer    *kafka.Dialer      // nil: plain
	Transport kafka.RoundTripper // nil: one of its own
	Topic     string
	Applier   Applier
	// Blacklisted is what of upstrands the proxy passes over now, for its reports. Nil: they say nothing of it.
	Blacklisted func() []proxy.Blacklisted
	// StateFile keeps the last good topology over restarts; each proxy needs its own. Empty: none is kept.
	StateFile string

	TopicWait time.Duration // how long a start waits for the topic before it serves from StateFile (3 s)
	MaxWait   time.Duration // how long the broker holds an empty fetch (250 ms)
	Timeout   time.Duration // for any single answer of a broker beyond that (10 s)
	Reread    time.Duration // at most so often the log is read again from the start (30 s)
	Jitter    time.Duration // before it is read again, so that not all proxies do it at once (3 s)
	SaveEvery time.Duration // at most so often StateFile is written (10 s)
	RetryMax  time.Duration // longest pause after errors; the first is a tenth of it (1 s)
	MaxFetch  int           // bytes of a fetch; a larger record comes all the same, alone (16 MiB)

	Logger     zerolog.Logger
	Registerer prometheus.Registerer // nil: metrics are kept, not exposed
}

func (c Config) withDefaults() Config {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	or(&c.TopicWait, 3*time.Second)
	or(&c.MaxWait, 250*time.Millisecond)
	or(&c.Timeout, 10*time.Second)
	or(&c.Reread, 30*time.Second)
	or(&c.Jitter, 3*time.Second)
	or(&c.SaveEvery, 10*time.Second)
	or(&c.RetryMax, time.Second)
	if c.MaxFetch <= 0 {
		c.MaxFetch = 16 << 20
	}
	if c.Dialer == nil {
		c.Dialer = &kafka.Dialer{Timeout: c.Timeout}
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("no brokers"))
	}
	if c.Topic == "" {
		errs = append(errs, errors.New("no topic"))
	}
	if c.Applier == nil {
		errs = append(errs, errors.New("nobody to apply topologies"))
	}
	return errors.Join(errs...)
}

// The sources of a topology in force.
const (
	SourceTopic = "topic"
	SourceFile  = "file"
)

// Agent follows the topic. Its methods are safe for concurrent use.
type Agent struct {
	config  Config
	log     zerolog.Logger
	metrics *metrics
	client  *kafka.Client
	save    chan struct{} // one slot: a topology waits to be written to StateFile
	retired atomic.Bool   // the state file is another one's
	missed  atomic.Bool   // … and what is in force is not in it

	mu      sync.Mutex // held during Apply, so that file and topic can't overtake each other
	applied *topology.Topology
	source  string
	commit  time.Time // when a commit record was last seen
	problem error     // why what the topic says now is not in force; nil: it is
}

// New makes an agent that does nothing before Run.
func New(c Config) (*Agent, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("agent: config: %w", err)
	}
	a := &Agent{config: c.withDefaults(), log: c.Logger, save: make(chan struct{}, 1)}
	var err error
	if a.metrics, err = newMetrics(c.Registerer, a); err != nil {
		return nil, fmt.Errorf("agent: metrics: %w", err)
	}
	return a, nil
}

// Retire leaves the state file to the agent of another process that has taken this one's place. All else goes on.
func (a *Agent) Retire() { a.retired.Store(true) }

// Keep takes the state file over after Retire, when the agent that had it writes it no more.
func (a *Agent) Keep() {
	a.retired.Store(false)
	if a.missed.Swap(false) {
		a.toSave()
	}
}

// Run follows the topic until ctx ends, whatever happens to Kafka. It returns nil, and leaves no goroutine behind.
func (a *Agent) Run(ctx context.Context) error {
	transport := a.config.Transport
	if transport == nil {
		own := &kafka.Transport{DialTimeout: a.config.Timeout}
		defer own.CloseIdleConnections()
		transport = own
	}
	a.client = &kafka.Client{Addr: kafka.TCP(a.config.Brokers...), Transport: transport, Timeout: a.config.Timeout}
	var wg sync.WaitGroup
	wg.Go(func() { a.startFromFile(ctx) })
	wg.Go(func() { a.keepFile(ctx) })
	newFollower(a).run(ctx)
	wg.Wait()
	return nil
}

// Ready is nil when a topology is in force.
func (a *Agent) Ready() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.applied != nil {
		return nil
	}
	if a.problem != nil {
		return fmt.Errorf("no topology yet: %w", a.problem)
	}
	return errors.New("no topology yet: the topic is being read")
}

// errOlder says that a commit is older than what is in force.
var errOlder = errors.New("agent: the topic's commit is older than the topology in force")

// apply puts t in force, unless something newer is. A topology from the file never replaces one from the topic.
func (a *Agent) apply(t *topology.Topology, source string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.applied != nil {
		if source == SourceFile {
			return nil
		}
		have := pairOf(a.applied)
		switch c := pairOf(t).Compare(have); {
		case c < 0:
			return fmt.Errorf("%w: %s after %s", errOlder, pairOf(t), have)
		case c == 0 && t.Digest == a.applied.Digest:
			a.source = source
			return nil
		}
	}
	if err := a.config.Applier.Apply(t); err != nil {
		return err
	}
	a.applied, a.source = t, source
	if source == SourceTopic {
		a.toSave()
	}
	return nil
}

func pairOf(t *topology.Topology) topology.Pair {
	return topology.Pair{Epoch: t.Epoch, Version: t.Version}
}

// sawCommit notes that the leader is alive.
func (a *Agent) sawCommit() {
	a.mu.Lock()
	a.commit = time.Now()
	a.mu.Unlock()
}

// note sets or clears why the topic's newest is not in force, and logs a change of it.
func (a *Agent) note(err error) {
	a.mu.Lock()
	before, none := a.problem, a.applied == nil
	a.problem = err
	a.mu.Unlock()
	switch {
	case err == nil && before != nil:
		a.log.Info().Msg("follows the topic again")
	case err != nil && (before == nil || before.Error() != err.Error()):
		if none {
			a.log.Warn().Err(err).Msg("has no topology yet; answers 503 until there is one")
			return
		}
		a.log.Warn().Err(err).Msg("keeps the last good topology")
	}
}
