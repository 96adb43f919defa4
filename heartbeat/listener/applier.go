package listener

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/registry"
)

// applier commits one partition's batches in order, each as one transaction. The only errors that it returns are
// registry.ErrFenced (the state in the registry is not what this owner knows: start again from there) and that of ctx.
type applier struct {
	cfg    *Config
	met    *metrics
	log    zerolog.Logger
	state  *partState
	part   int32
	stream Stream

	down    onset // trouble with the database, for the log
	refused int   // records given up in a row, without a beat applied in between
	held    int   // unproven instances as last heard
}

const (
	divideAfter = 3           // failures of one batch, with a database that works, before it is cut in two
	freshView   = time.Second // how old the sight of the log's end may be to judge by it
	maxCooldown = time.Minute
)

// run applies what comes until ctx ends or another owner has been at work.
func (a *applier) run(ctx context.Context, in <-chan work) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case w := <-in:
			if err := a.do(ctx, w); err != nil {
				return err
			}
		}
	}
}

func (a *applier) do(ctx context.Context, w work) error {
	if w.restart {
		return a.restart(ctx, w.offset, w.cause)
	}
	return a.apply(ctx, w.batch, w.seen)
}

// apply commits b, however long that takes. seen is when the log's end was where b says.
func (a *applier) apply(ctx context.Context, b registry.Batch, seen time.Time) error {
	return a.insist(ctx, func() error { return a.attempt(ctx, &b, seen) }, stands(b),
		func(cause error) error { return a.divide(ctx, b, cause) })
}

// stands says what a stream's offset means for b: committed already, or still to be.
func stands(b registry.Batch) func(next int64) (done, ours bool) {
	return func(next int64) (done, ours bool) { return next == b.Next, next == b.From }
}

// restart moves the stream to offset, however long that takes.
func (a *applier) restart(ctx context.Context, offset int64, cause string) error {
	before := a.stream.State().NextOffset
	err := a.insist(ctx,
		func() error {
			ctx, cancel := context.WithTimeout(ctx, a.cfg.ApplyTimeout)
			defer cancel()
			return a.stream.Restart(ctx, offset, cause)
		},
		func(next int64) (done, ours bool) { return next == offset, next == before }, nil)
	if err != nil {
		return err
	}
	a.state.appliedTo(offset, nil)
	if before >= 0 {
		a.met.restarts.Inc()
		a.log.Warn().Int64("from", before).Int64("to", offset).Str("cause", cause).Msg("stream restarted")
	}
	return nil
}

// insist tries until it succeeds. After a failure nobody knows what was committed, so the stream is opened again before
// the next try: where says of the offset found there whether the work was done after all, or is still to be done; if
// neither, another owner has been at work. A database that can't even open the stream is away, and the work waits. One
// that opens it and still refuses the work, several times in a row, makes stuck be called, if there is one.
func (a *applier) insist(ctx context.Context, try func() error, where func(next int64) (done, ours bool), stuck func(error) error) error {
	bo := backoff{min: a.cfg.RetryMin, max: a.cfg.RetryMax}
	failures := 0
	for {
		err := try()
		if err == nil || errors.Is(err, registry.ErrFenced) {
			a.recovered()
			return err
		}
		if failures++; stuck != nil && failures >= divideAfter && !passes(err) {
			return stuck(err)
		}
		for {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			a.failed(err)
			if !bo.wait(ctx) {
				return ctx.Err()
			}
			if err = a.reopen(ctx); err == nil {
				break
			}
			failures = 0
		}
		next := a.stream.State().NextOffset
		switch done, ours := where(next); {
		case done:
			a.recovered()
			a.state.appliedTo(next, nil)
			return nil
		case !ours:
			a.recovered()
			return fmt.Errorf("stream stands at %d: %w", next, registry.ErrFenced)
		}
	}
}

// passes reports whether an error is of the kind that waiting cures and that says nothing about the work itself.
func passes(err error) bool {
	var netErr net.Error
	return errors.Is(err, context.DeadlineExceeded) || registry.Passing(err) || errors.As(err, &netErr)
}

func (a *applier) reopen(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.ApplyTimeout)
	defer cancel()
	s, err := a.cfg.Recorder.OpenStream(ctx, a.part, a.cfg.Owner)
	if err != nil {
		return fmt.Errorf("open stream: %w", err)
	}
	a.stream = s
	return nil
}

// attempt is one transaction.
func (a *applier) attempt(ctx context.Context, b *registry.Batch, seen time.Time) error {
	if b.CaughtUp && time.Since(seen) > freshView {
		b.CaughtUp = false // the log has grown since, and a backlog is applied before anyone is judged
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.ApplyTimeout)
	defer cancel()
	a.state.applyBegins()
	start := time.Now()
	res, err := a.stream.Apply(ctx, *b)
	if err != nil {
		if errors.Is(err, registry.ErrFenced) {
			return err
		}
		return fmt.Errorf("apply offsets %d to %d: %w", b.From, b.Next, err)
	}
	a.state.appliedTo(b.Next, nil)
	a.count(b, res, time.Since(start))
	return nil
}

func (a *applier) count(b *registry.Batch, res registry.Result, took time.Duration) {
	m, p := a.met, label(a.part)
	m.batchRecords.Observe(float64(len(b.Records) + len(b.Rejected)))
	m.batchSeconds.Observe(took.Seconds())
	m.applied.Add(float64(res.Applied))
	m.joined.Add(float64(res.Joined))
	m.stale.Add(float64(res.Stale))
	for reason, n := range res.Ignored {
		m.ignored.WithLabelValues(reason).Add(float64(n))
	}
	for _, r := range b.Rejected {
		m.rejected.WithLabelValues(r.Reason).Inc()
	}
	m.clock.WithLabelValues(p).Set(res.Clock.Seconds())
	m.unproven.WithLabelValues(p).Set(float64(res.Unproven))
	if (res.Unproven > 0) != (a.held > 0) {
		a.log.Warn().Int("unproven", res.Unproven).Int("before", a.held).
			Msg("number of overdue instances that are kept because too many are overdue at once")
	}
	a.held = res.Unproven
	_, lag := a.state.position()
	m.lag.WithLabelValues(p).Set(float64(lag))
	if res.Applied > 0 {
		a.refused = 0
	}
}

// failed and recovered note how the database does.
func (a *applier) failed(err error) {
	a.state.appliedTo(0, err)
	a.met.applyErrors.Inc()
	a.met.away.WithLabelValues(label(a.part)).Set(1)
	if a.down.begins() {
		a.log.Error().Err(err).Msg("registry can't be written: partition stands still, trying again")
	}
}

func (a *applier) recovered() {
	a.met.away.WithLabelValues(label(a.part)).Set(0)
	if d, ok := a.down.ends(); ok {
		a.log.Info().Dur("after", d).Msg("registry is written again")
	}
}
