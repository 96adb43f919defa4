package confgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// Source is what the topology is built from.
type Source interface {
	Revision(ctx context.Context) (int64, error)
	Snapshot(ctx context.Context) (registry.Snapshot, error)
	Changes(ctx context.Context, since int64) (registry.Snapshot, error)
}

// Leases hands out the lead. Every method but AcquireLease gives registry.ErrFenced when the lease is no longer the
// caller's or has expired by the database's clock. An AcquireLease that is not ok names the Holder that is in the way, as
// far as it is known.
type Leases interface {
	AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (registry.Lease, bool, error)
	RenewLease(ctx context.Context, l registry.Lease) error
	ReleaseLease(ctx context.Context, l registry.Lease) error
	RaiseEpoch(ctx context.Context, l registry.Lease, atLeast int64) (registry.Lease, error)
}

// Versions is the history of what was published. LatestVersion gives registry.ErrNotFound when there is none.
type Versions interface {
	InsertVersion(ctx context.Context, l registry.Lease, v registry.Version, changed []registry.TopologyRecord) error
	LatestVersion(ctx context.Context) (registry.Version, error)
	LatestRecords(ctx context.Context) ([]registry.TopologyRecord, error)
	TrimVersions(ctx context.Context, keep int) error
}

// Fleet is what is known of the agents and the listeners.
type Fleet interface {
	Agents(ctx context.Context) ([]registry.Agent, error)
	Streams(ctx context.Context) ([]registry.StreamState, error)
	AddEvent(ctx context.Context, e registry.Event) error
}

// Topic is the one partition of topic_upstream_conf.
type Topic interface {
	// Read calls f for each record from an offset (negative: the first there is) up to the end that the log has now, in
	// order, and says which offsets the log has. Next is where to go on. An offset beyond the end gives no record.
	Read(ctx context.Context, from int64, f func(topology.Message)) (Extent, error)
	// Produce appends the messages in order, with one attempt, and returns once all are in the log. After an error any
	// first part of them may be there, now or later.
	Produce(ctx context.Context, messages []topology.Message) error
}

// Extent is what a log holds: offsets from Start up to, not including, End.
type Extent = topology.Extent

// HeartbeatLog tells where the partitions of topic_heartbeat end.
type HeartbeatLog interface {
	HeartbeatEnds(ctx context.Context) (map[int32]int64, error)
}

// Config is what a Generator needs. Source to HeartbeatLog and Holder must be set; times that are zero get their default.
type Config struct {
	Source     Source
	Leases     Leases
	Versions   Versions
	Fleet      Fleet
	Topic      Topic
	Heartbeats HeartbeatLog
	// Housekeep, if set, tidies the registry: releases urls, forgets the dead, trims histories. The leader calls it.
	Housekeep func(ctx context.Context) error

	Name   string // of the lease; default "confgen"
	Holder string // of the lease, another one for each process that ever runs

	Lease             time.Duration // 3 s: how long a leader that died keeps others waiting; renewed each third
	Poll              time.Duration // 500 ms: how often the registry is asked for its revision
	CommitInterval    time.Duration // 10 s: how often the commit is repeated when nothing changes
	StaleHold         time.Duration // 30 s: least stream time to publish nothing after the database was restored
	AgentInterval     time.Duration // 5 s: how often agents' reports are looked at
	AuditInterval     time.Duration // 5 min: how often the whole topic is read again and compared
	HousekeepInterval time.Duration // 1 min
	StuckAfter        time.Duration // 1 min: a leader that fails to store or publish for longer is not ready
	KafkaTimeout      time.Duration // 5 s: of one read of what is new, or append; an append never outlasts the lease
	DatabaseTimeout   time.Duration // 5 s: of one call; what reads all there is may take twelve times as long, as with Kafka
	KeepVersions      int           // 1000: versions kept in the registry

	Logger     zerolog.Logger
	Registerer prometheus.Registerer // nil: no metrics
}

func (c *Config) fill() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, fmt.Errorf("confgen: %s is needed", what))
		}
	}
	need(c.Source != nil, "Source")
	need(c.Leases != nil, "Leases")
	need(c.Versions != nil, "Versions")
	need(c.Fleet != nil, "Fleet")
	need(c.Topic != nil, "Topic")
	need(c.Heartbeats != nil, "Heartbeats")
	need(c.Holder != "", "Holder")
	if c.Name == "" {
		c.Name = "confgen"
	}
	for _, t := range []struct {
		name string
		to   *time.Duration
		or   time.Duration
	}{
		{"Lease", &c.Lease, 3 * time.Second},
		{"Poll", &c.Poll, 500 * time.Millisecond},
		{"CommitInterval", &c.CommitInterval, 10 * time.Second},
		{"StaleHold", &c.StaleHold, 30 * time.Second},
		{"AgentInterval", &c.AgentInterval, 5 * time.Second},
		{"AuditInterval", &c.AuditInterval, 5 * time.Minute},
		{"HousekeepInterval", &c.HousekeepInterval, time.Minute},
		{"StuckAfter", &c.StuckAfter, time.Minute},
		{"KafkaTimeout", &c.KafkaTimeout, 5 * time.Second},
		{"DatabaseTimeout", &c.DatabaseTimeout, 5 * time.Second},
	} {
		if *t.to == 0 {
			*t.to = t.or
		}
		need(*t.to > 0, t.name+" above zero")
	}
	if c.KeepVersions == 0 {
		c.KeepVersions = 1000
	}
	need(c.KeepVersions > 0, "KeepVersions above zero")
	return errors.Join(errs...)
}

// Generator keeps topic_upstream_conf equal to the registry while it leads, and stands by while another does.
type Generator struct {
	cfg     Config
	log     zerolog.Logger
	metrics *metrics
	state   *state
	asking  *troubles     // of asking for the lead; Run's own
	told    map[Note]bool // notes that were made events, in any term; Run's own
}

// New checks the settings. It starts nothing.
func New(cfg Config) (*Generator, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	s := newState(cfg)
	m, err := newMetrics(cfg.Registerer, s)
	if err != nil {
		return nil, err
	}
	log := cfg.Logger.With().Str("holder", cfg.Holder).Logger()
	return &Generator{cfg: cfg, log: log, metrics: m, state: s, asking: newTroubles(log), told: map[Note]bool{}}, nil
}

// Run stands by and leads by turns until ctx ends, then gives the lease back. It leaves no goroutine behind, and its
// result is ctx's error.
func (g *Generator) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if l := g.acquire(ctx); l != nil {
			g.lead(ctx, l)
		}
		if err := sleep(ctx, g.cfg.Lease/3); err != nil {
			break
		}
	}
	return ctx.Err()
}

// acquire tries once to take the lease; nil: somebody else has it, or the database can't be reached.
func (g *Generator) acquire(ctx context.Context) *lease {
	start := time.Now()
	call, cancel := context.WithTimeout(ctx, g.cfg.DatabaseTimeout)
	defer cancel()
	held, ok, err := g.cfg.Leases.AcquireLease(call, g.cfg.Name, g.cfg.Holder, g.cfg.Lease)
	g.state.database(err)
	if err != nil {
		if ctx.Err() == nil {
			g.asking.failed("lead", fmt.Errorf("confgen: ask for the lead: %w", err))
		}
		return nil
	}
	g.asking.works("lead")
	if !ok {
		if g.state.follows(held.Holder) {
			g.log.Info().Str("leader", held.Holder).Msg("standing by; another one leads")
		}
		g.state.work(nil) // that is the other one's now
		return nil
	}
	return newLease(g, held, start)
}

// lead works until the lease is lost or ctx ends.
func (g *Generator) lead(ctx context.Context, l *lease) {
	g.log.Info().Int64("epoch", l.current().Epoch).Msg("leading")
	g.state.leads(l)
	g.metrics.terms.Inc()
	g.metrics.leader.Set(1)
	term, lost := context.WithCancelCause(ctx)
	var work sync.WaitGroup
	work.Go(func() { lost(l.keep(term)) })
	work.Go(func() { g.housekeep(term, l) })
	lost(newTerm(g, l).run(term))
	work.Wait()
	g.state.leads(nil)
	g.metrics.leader.Set(0)
	g.metrics.holding.Set(0)
	if ctx.Err() == nil {
		g.log.Warn().Err(context.Cause(term)).Msg("lost the lead")
		return
	}
	if err := l.release(); err != nil {
		g.log.Warn().Err(err).Msg("can't give the lead back; the lease runs out by itself")
		return
	}
	g.log.Info().Msg("gave the lead back")
}

// housekeep tidies the registry now and then while the lease lasts.
func (g *Generator) housekeep(ctx context.Context, l *lease) {
	for sleep(ctx, g.cfg.HousekeepInterval) == nil {
		if l.left() == 0 {
			continue
		}
		call, cancel := context.WithTimeout(ctx, g.cfg.HousekeepInterval)
		err := g.cfg.Versions.TrimVersions(call, g.cfg.KeepVersions)
		if g.cfg.Housekeep != nil {
			err = errors.Join(err, g.cfg.Housekeep(call))
		}
		cancel()
		if err != nil && ctx.Err() == nil {
			g.metrics.failures.WithLabelValues("housekeep").Inc()
			g.log.Warn().Err(err).Msg("can't tidy the registry")
		}
	}
}

// sleep waits; ctx's error when that ended first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Leader reports whether this Generator holds the lease, by its own clock.
func (g *Generator) Leader() bool { return g.state.leaseLeft() > 0 }

// Ready is nil while the database answers, as leader and as standby alike, and a leader has not failed to publish for
// longer than StuckAfter; the error says why not. To hold publishing back is no failure: see Note.
func (g *Generator) Ready() error { return g.state.ready() }

// Note is what an operator should know though the Generator is ready, such as that it holds publishing back; else empty.
func (g *Generator) Note() string { return g.state.text() }

// Role says whether it leads or stands by, and who leads then as far as it is known: "leads", "stands by; NAME leads".
func (g *Generator) Role() string { return g.state.role() }
