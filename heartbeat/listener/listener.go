package listener

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// Listener is one member of the consumer group that carries beats into the registry. Create it with New.
type Listener struct {
	cfg    Config
	met    *metrics
	wires  *wires
	dialer *kafka.Dialer

	mu  sync.Mutex
	gen *owned // nil: no generation is running
	err error  // why there is none, if known
}

// owned is what a generation assigned to this listener.
type owned struct{ parts map[int32]*partState }

// New validates the config. Nothing is dialled before Run.
func New(cfg Config) (*Listener, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	met, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	l := &Listener{cfg: cfg, met: met, wires: &wires{limit: cfg.ReadTimeout}}
	l.dialer = l.wires.dialer(cfg.Dialer)
	return l, nil
}

// Run takes part in the group until ctx ends, then leaves it, so that the others take over at once. It survives any
// failure of Kafka and of the registry; the only errors are of a config that Kafka's client refuses. A Listener runs
// once.
func (l *Listener) Run(ctx context.Context) error {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                     l.cfg.GroupID,
		Brokers:                l.cfg.Brokers,
		Dialer:                 l.dialer,
		Topics:                 []string{l.cfg.Topic},
		HeartbeatInterval:      l.cfg.HeartbeatInterval,
		SessionTimeout:         l.cfg.SessionTimeout,
		RebalanceTimeout:       l.cfg.RebalanceTimeout,
		JoinGroupBackoff:       l.cfg.JoinBackoff,
		Timeout:                l.cfg.ReadTimeout,
		WatchPartitionChanges:  true,
		PartitionWatchInterval: l.cfg.PartitionWatchInterval,
		StartOffset:            kafka.FirstOffset, // never used: offsets are the registry's
	})
	if err != nil {
		return fmt.Errorf("listener: consumer group %s: %w", l.cfg.GroupID, err)
	}
	pulses, release := l.pulseClient()
	l.cfg.Logger.Info().Str("owner", l.cfg.Owner).Str("group", l.cfg.GroupID).Str("topic", l.cfg.Topic).Msg("joining")
	l.generations(ctx, group, pulses)
	l.leave(group)
	release()
	return nil
}

// pulseClient is what pulses are written with. It never retries: a pulse whose end is not known must not be written
// again. release closes what the client opened, if that is ours.
func (l *Listener) pulseClient() (client *kafka.Client, release func()) {
	client = &kafka.Client{Addr: kafka.TCP(l.cfg.Brokers...), Transport: l.cfg.Transport}
	if l.cfg.Transport != nil {
		return client, func() {}
	}
	own := &kafka.Transport{
		Dial:        l.dialer.DialFunc,
		DialTimeout: l.cfg.ReadTimeout,
		IdleTimeout: 30 * time.Second,
		MetadataTTL: 2 * time.Second, // how long pulses go to a leader that has moved
		TLS:         l.dialer.TLS,
		SASL:        l.dialer.SASLMechanism,
		ClientID:    l.dialer.ClientID,
	}
	client.Transport = own
	return client, own.CloseIdleConnections
}

// generations serves one generation of the group after the other until ctx ends.
func (l *Listener) generations(ctx context.Context, group *kafka.ConsumerGroup, pulses *kafka.Client) {
	var down onset
	short := 0 // generations in a row that ended at once
	for {
		gen, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, kafka.ErrGroupClosed):
			return
		case err != nil: // the group waits JoinBackoff by itself
			l.met.groupErrors.Inc()
			l.ends(nil, err)
			if down.begins() {
				l.cfg.Logger.Warn().Err(err).Msg("can't join the group, trying again")
			}
			continue
		}
		if d, ok := down.ends(); ok {
			l.cfg.Logger.Info().Dur("after", d).Msg("joined again")
		}
		began := time.Now()
		l.serve(ctx, gen, pulses)
		// A topic that doesn't exist, for one, ends each generation as soon as it begins.
		if time.Since(began) >= l.cfg.JoinBackoff {
			short = 0
		} else if short++; short > 1 && !sleep(ctx, l.cfg.JoinBackoff-time.Since(began)) {
			return
		}
	}
}

// serve owns what the generation assigns until it ends or ctx does. All that it started has then ended, or is about to
// because the generation has.
func (l *Listener) serve(ctx context.Context, gen *kafka.Generation, pulses *kafka.Client) {
	assigned := gen.Assignments[l.cfg.Topic]
	own := &owned{parts: make(map[int32]*partState, len(assigned))}
	for _, a := range assigned {
		own.parts[int32(a.ID)] = newPartState(int32(a.ID))
	}
	l.begins(own)
	l.cfg.Logger.Info().Int32("generation", gen.ID).Ints("partitions", partitionIDs(assigned)).Msg("generation begins")

	ended := make(chan struct{})
	gen.Start(func(genCtx context.Context) {
		<-genCtx.Done()
		l.ends(own, nil)
		close(ended)
	})
	for _, s := range own.parts {
		o := l.owner(s, pulses)
		gen.Start(o.run)
	}
	if len(own.parts) > 0 {
		gen.Start(func(genCtx context.Context) { l.commit(genCtx, gen, own.parts) })
	}
	select {
	case <-ctx.Done():
	case <-ended:
		l.cfg.Logger.Info().Int32("generation", gen.ID).Msg("generation ended")
	}
}

func (l *Listener) owner(s *partState, pulses *kafka.Client) *owner {
	d := &leaderDialer{
		dialer: l.dialer, brokers: l.cfg.Brokers, topic: l.cfg.Topic, part: int(s.part),
		bytes: l.cfg.FetchBytes, timeout: l.cfg.ReadTimeout, next: int(s.part),
	}
	return &owner{
		cfg: &l.cfg, met: l.met, state: s, part: s.part,
		log:        l.cfg.Logger.With().Int32("partition", s.part).Logger(),
		dial:       d.dial,
		partitions: d.partitions,
		pulse: func(ctx context.Context, value []byte) error {
			return writePulse(ctx, pulses, l.cfg.Topic, int(s.part), value)
		},
	}
}

// writePulse is one attempt to add a pulse to exactly this partition.
func writePulse(ctx context.Context, client *kafka.Client, topic string, part int, value []byte) error {
	res, err := client.Produce(ctx, &kafka.ProduceRequest{
		Topic:        topic,
		Partition:    part,
		RequiredAcks: kafka.RequireAll,
		Records:      kafka.NewRecordReader(kafka.Record{Key: kafka.NewBytes([]byte(pulseKey)), Value: kafka.NewBytes(value), Time: time.Now()}),
	})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return fmt.Errorf("write pulse to %s/%d: %w", topic, part, err)
	}
	return nil
}

// commit tells Kafka now and then how far the partitions are applied. Nothing reads it but lag tools.
func (l *Listener) commit(ctx context.Context, gen *kafka.Generation, states map[int32]*partState) {
	last := map[int]int64{}
	for sleep(ctx, l.cfg.CommitInterval) {
		moved := map[int]int64{}
		for part, s := range states {
			if applied, _ := s.position(); applied >= 0 && last[int(part)] != applied {
				moved[int(part)] = applied
			}
		}
		if len(moved) == 0 {
			continue
		}
		if err := gen.CommitOffsets(map[string]map[int]int64{l.cfg.Topic: moved}); err != nil {
			l.met.commitErrors.Inc()
			l.cfg.Logger.Debug().Err(err).Msg("offsets not committed to Kafka")
			continue
		}
		for part, offset := range moved {
			last[part] = offset
		}
	}
}

// leave leaves the group. A broker that doesn't answer gets StopTimeout, then the connections are cut, so that nothing
// of the group stays behind.
func (l *Listener) leave(group *kafka.ConsumerGroup) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = group.Close() // never fails
	}()
	limit := time.NewTimer(l.cfg.StopTimeout)
	defer limit.Stop()
	select {
	case <-closed:
	case <-limit.C:
		l.cfg.Logger.Warn().Dur("after", l.cfg.StopTimeout).Msg("group didn't let go in time, cutting connections")
	}
	l.wires.cutAll()
	<-closed
}

func (l *Listener) begins(own *owned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gen, l.err = own, nil
	l.met.generations.Inc()
	l.met.owned.Set(float64(len(own.parts)))
}

// ends notes that own is over (nil: that no generation is running), and why.
func (l *Listener) ends(own *owned, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own != nil && l.gen != own {
		return
	}
	l.gen, l.err = nil, err
	l.met.owned.Set(0)
}

// Ready is nil while this listener is a member of the group and each of its partitions is caught up with its log. One
// without partitions is ready, as a standby.
func (l *Listener) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gen == nil {
		if l.err != nil {
			return fmt.Errorf("not a member of group %s: %w", l.cfg.GroupID, l.err)
		}
		return fmt.Errorf("not a member of group %s yet", l.cfg.GroupID)
	}
	var errs []error
	for _, part := range slices.Sorted(maps.Keys(l.gen.parts)) {
		if err := l.gen.parts[part].ready(readyGrace * l.cfg.PulseInterval); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// readyGrace is how many pulse intervals a partition may be behind its log before the listener counts as not ready.
const readyGrace = 5

func partitionIDs(assigned []kafka.PartitionAssignment) []int {
	ids := make([]int, len(assigned))
	for i, a := range assigned {
		ids[i] = a.ID
	}
	slices.Sort(ids)
	return ids
}
