package listener

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/registry"
)

// owner is the ownership of one partition for the length of a generation.
type owner struct {
	cfg   *Config
	met   *metrics
	log   zerolog.Logger
	state *partState
	part  int32

	dial       func(ctx context.Context) (source, error)
	pulse      func(ctx context.Context, value []byte) error // one attempt, acknowledged by all replicas
	partitions func(ctx context.Context) (int, error)        // how many the topic has
}

// run owns the partition until ctx ends. It returns for no other reason: the group takes a function of a generation
// that returns for the generation's end.
func (o *owner) run(ctx context.Context) {
	defer o.met.forget(o.part)
	bo := backoff{min: o.cfg.RetryMin, max: max(o.cfg.HeartbeatInterval, o.cfg.RetryMin)}
	for {
		stream, err := o.open(ctx)
		if err != nil {
			return
		}
		began := time.Now()
		err = o.session(ctx, stream)
		o.state.opened(-1, false)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, registry.ErrReload) {
			o.log.Warn().Err(err).Msg("outcome of a transaction is unknown: opening the stream again")
		} else {
			// The offset in the registry isn't where this owner left it. If the group really gave the partition to
			// another, the next heartbeat says so; until then go on from what is there, without haste.
			o.met.fenced.Inc()
			o.log.Warn().Err(err).Msg("fenced: dropping what was read, opening the stream again")
		}
		if time.Since(began) > bo.max {
			bo.reset()
		}
		if !bo.wait(ctx) {
			return
		}
	}
}

// open opens the stream, however long the database takes. The only error is that of ctx.
func (o *owner) open(ctx context.Context) (Stream, error) {
	bo := backoff{min: o.cfg.RetryMin, max: o.cfg.RetryMax}
	away := o.met.away.WithLabelValues(label(o.part))
	var down onset
	for {
		stream, err := o.openOnce(ctx)
		if err == nil {
			away.Set(0)
			if d, ok := down.ends(); ok {
				o.log.Info().Dur("after", d).Msg("stream opened")
			}
			return stream, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		o.met.applyErrors.Inc()
		o.state.appliedTo(0, err)
		away.Set(1)
		if down.begins() {
			o.log.Error().Err(err).Msg("stream can't be opened, trying again")
		}
		if !bo.wait(ctx) {
			return nil, ctx.Err()
		}
	}
}

func (o *owner) openOnce(ctx context.Context) (Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.ApplyTimeout)
	defer cancel()
	stream, err := o.cfg.Recorder.OpenStream(ctx, o.part, o.cfg.Owner)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	if o.part != 0 {
		return stream, nil
	}
	// Partition 0 looks after instances whose partition is gone (a topic created anew with fewer).
	n, err := o.partitions(ctx)
	if err != nil {
		return nil, fmt.Errorf("count partitions: %w", err)
	}
	if err := stream.Adopt(ctx, n); err != nil {
		return nil, fmt.Errorf("adopt instances of partitions from %d on: %w", n, err)
	}
	return stream, nil
}

// session reads, applies and pulses until ctx ends or the stream turns out to be another's.
func (o *owner) session(ctx context.Context, stream Stream) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	pos := stream.State().NextOffset
	o.state.opened(pos, true)
	out := make(chan work)
	r := &reader{cfg: o.cfg, met: o.met, log: o.log, state: o.state, dial: o.dial, out: out, pos: pos}
	a := &applier{cfg: o.cfg, met: o.met, log: o.log, state: o.state, part: o.part, stream: stream}
	var down onset
	p := &pulser{
		interval: o.cfg.PulseInterval,
		open: func() bool {
			return o.state.alive(o.cfg.FetchWait, max(2*o.cfg.PulseInterval, time.Second))
		},
		write: func(ctx context.Context, value []byte) error {
			if err := o.pulse(ctx, value); err != nil {
				return err
			}
			o.met.pulses.Inc()
			if d, ok := down.ends(); ok {
				o.log.Info().Dur("after", d).Msg("pulses are written again")
			}
			return nil
		},
		failed: func(err error) {
			o.met.pulseFailures.Inc()
			if down.begins() {
				o.log.Warn().Err(err).Msg("pulse not written: the partition's clock stands still")
			}
		},
	}
	wg.Go(func() { r.run(ctx) })
	wg.Go(func() { p.run(ctx) })
	if err := a.run(ctx, out); errors.Is(err, registry.ErrFenced) {
		return err
	}
	return ctx.Err()
}
