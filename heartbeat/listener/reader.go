package listener

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/registry"
)

// work is what the reader hands to the applier: a batch, or a restart of the stream at an offset.
type work struct {
	batch registry.Batch
	seen  time.Time // when the log's end was where the batch says

	restart bool
	offset  int64
	cause   string // for people; empty: nothing to tell
}

// reader follows one partition's log from pos on and hands over batches in order. It reads ahead of the applier by one
// batch, no further: out is unbuffered, and a full batch waits there.
type reader struct {
	cfg   *Config
	met   *metrics
	log   zerolog.Logger
	state *partState
	dial  func(ctx context.Context) (source, error)
	out   chan<- work

	pos     int64            // next offset to read, -1: not known yet
	full    []registry.Batch // cut from the last response, not handed over yet
	pending registry.Batch   // being collected; Next == From: nothing in it
	since   time.Time        // when pending got its first record
	stamp   int64            // ReceivedAt of the response being read, 0: not taken yet
	end     int64            // end of the log as last seen

	bo       backoff // between connections
	stuck    int     // attempts at pos that brought nothing although the log goes on
	hopeless bool    // the offset before pos was given up, so pos gets one attempt only
	down     onset   // trouble with Kafka, for the log
}

const stuckAttempts = 3

// errRestarted ends a connection after its stream was restarted: the next begins at the new offset.
var errRestarted = errors.New("stream restarted")

// run reads until ctx ends.
func (r *reader) run(ctx context.Context) {
	r.bo = backoff{min: r.cfg.RetryMin, max: r.cfg.RetryMax}
	r.pending.From, r.pending.Next = r.pos, r.pos
	for ctx.Err() == nil {
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, errRestarted) {
			r.state.fetched(0, err)
			r.met.fetchErrors.Inc()
			if r.down.begins() {
				r.log.Warn().Err(err).Msg("partition can't be read, trying again")
			}
		}
		if r.flush(ctx) != nil {
			return
		}
		// The offset after one that was given up is tried at once: a broken batch may be long.
		if again := r.hopeless && errors.Is(err, errUnreadable); !again && !r.bo.wait(ctx) {
			return
		}
	}
}

// follow dials the leader and reads until an error.
func (r *reader) follow(ctx context.Context) error {
	src, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer src.close()
	defer context.AfterFunc(ctx, src.close)()
	if r.pos < 0 {
		first, _, err := src.bounds()
		if err != nil {
			return err
		}
		if err := r.restart(ctx, first, ""); err != nil { // a new partition is no event
			return err
		}
	}
	for {
		err := r.fetch(src)
		switch {
		case err == nil:
			r.bo.reset()
			if d, ok := r.down.ends(); ok {
				r.log.Info().Dur("after", d).Msg("partition is read again")
			}
		case errors.Is(err, kafka.OffsetOutOfRange):
			if err := r.outOfRange(ctx); err != nil {
				return err
			}
			return errRestarted
		case errors.Is(err, errUnreadable):
			r.giveUp(err)
			return err
		default:
			return err
		}
		if err := r.handOver(ctx); err != nil {
			return err
		}
	}
}

// fetch reads one response into pending and full.
func (r *reader) fetch(src source) error {
	minBytes, wait := 1, r.cfg.FetchWait
	if r.pending.Next > r.pending.From {
		// The batch waits for more: let the broker collect it, so that a busy partition costs two fetches a batch.
		minBytes, wait = r.cfg.FetchBytes/4, r.cfg.BatchTime-time.Since(r.since)
		if wait < time.Millisecond {
			wait = r.cfg.BatchTime // the applier is busy
		}
	}
	r.stamp = 0
	r.state.fetchBegins()
	before := r.pos
	next, end, err := src.fetch(r.pos, minBytes, wait, r.add)
	r.skipTo(next)
	if r.pos > before {
		r.stuck, r.hopeless = 0, false
		r.bo.reset()
	}
	if err != nil {
		return err
	}
	if r.pos == before && end > before { // a batch without a record is possible after compaction
		return fmt.Errorf("fetch from %d of %d: %w: empty", before, end, errUnreadable)
	}
	r.end = end
	r.state.fetched(end, nil)
	return nil
}

// add takes one record in.
func (r *reader) add(rec raw) {
	if r.stamp == 0 {
		r.stamp = r.cfg.Now().UnixMicro()
	}
	r.skipTo(rec.offset)
	parsed, bad, kind := read(rec, r.stamp)
	r.met.records.WithLabelValues(kind).Inc()
	r.begin()
	switch kind {
	case kindBad:
		r.pending.Rejected = append(r.pending.Rejected, *bad)
	case kindBeat, kindPulse:
		if r.pending.Records == nil {
			r.pending.Records = make([]registry.Record, 0, min(r.cfg.BatchRecords, 256))
		}
		r.pending.Records = append(r.pending.Records, parsed)
	}
	r.skipTo(rec.offset + 1)
	if len(r.pending.Records)+len(r.pending.Rejected) >= r.cfg.BatchRecords {
		r.full = append(r.full, r.pending)
		r.pending = registry.Batch{From: r.pos, Next: r.pos}
	}
}

// skipTo moves pos to next, which may leave offsets out that hold no record.
func (r *reader) skipTo(next int64) {
	if next > r.pos {
		r.begin()
		r.pos, r.pending.Next = next, next
	}
}

// begin starts the batch's clock with what first goes into it.
func (r *reader) begin() {
	if r.pending.Next == r.pending.From {
		r.since = time.Now()
	}
}

// handOver passes on what is full, waiting for the applier, and what has been collected for long enough, if the applier
// is free.
func (r *reader) handOver(ctx context.Context) error {
	seen := time.Now()
	for i := range r.full {
		r.full[i].CaughtUp = r.full[i].Next >= r.end
	}
	if err := r.sendFull(ctx, seen); err != nil {
		return err
	}
	if r.pending.Next == r.pending.From || time.Since(r.since) < r.cfg.BatchTime {
		return nil
	}
	b := r.pending
	b.LogEnd, b.CaughtUp = r.end, b.Next >= r.end
	select {
	case r.out <- work{batch: b, seen: seen}:
		r.pending = registry.Batch{From: r.pos, Next: r.pos}
	default:
	}
	return ctx.Err()
}

// flush passes on everything that was read. Whether it reaches the end of the log is not known then, so nobody is
// judged by it.
func (r *reader) flush(ctx context.Context) error {
	if r.pending.Next > r.pending.From {
		r.full = append(r.full, r.pending)
		r.pending = registry.Batch{From: r.pos, Next: r.pos}
	}
	return r.sendFull(ctx, time.Time{})
}

// sendFull passes on the full batches, waiting for the applier.
func (r *reader) sendFull(ctx context.Context, seen time.Time) error {
	for _, b := range r.full {
		b.LogEnd = max(r.end, b.Next)
		if err := r.send(ctx, work{batch: b, seen: seen}); err != nil {
			return err
		}
	}
	clear(r.full)
	r.full = r.full[:0]
	return nil
}

func (r *reader) send(ctx context.Context, w work) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r.out <- w:
		return nil
	}
}

// outOfRange finds out why the broker has nothing at pos, and restarts the stream where that is certain. It asks over a
// connection of its own: kafka-go leaves bytes of an answer with an error unread, so the old one is out of step.
func (r *reader) outOfRange(ctx context.Context) error {
	src, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer src.close()
	defer context.AfterFunc(ctx, src.close)()
	first, end, err := src.bounds()
	switch {
	case err != nil:
		return err
	case r.pos > end:
		return r.restart(ctx, first, fmt.Sprintf(
			"the log ends at offset %d, before the next one of the stream, %d: the topic was created anew; reading from its beginning, offset %d", end, r.pos, first))
	case r.pos < first:
		return r.restart(ctx, first, fmt.Sprintf(
			"offsets %d to %d are gone from the log by retention; reading goes on at %d", r.pos, first-1, first))
	}
	return fmt.Errorf("broker has no offset %d, yet its log goes from %d to %d", r.pos, first, end) // it changed in between
}

// restart moves the stream and this reader to offset, after everything that was read before.
func (r *reader) restart(ctx context.Context, offset int64, cause string) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	if err := r.send(ctx, work{restart: true, offset: offset, cause: cause}); err != nil {
		return err
	}
	r.pos = offset
	r.pending = registry.Batch{From: offset, Next: offset}
	r.stuck, r.hopeless = 0, false
	return nil
}

// giveUp counts an attempt at pos whose answer made no sense, and after a few steps over that offset, which is kept as a
// bad record. The offset after it then gets one attempt only: a broken batch may be long.
func (r *reader) giveUp(cause error) {
	if r.stuck++; r.stuck < stuckAttempts && !r.hopeless {
		return
	}
	r.log.Error().Err(cause).Int64("offset", r.pos).Msg("stepping over an unreadable offset")
	r.met.records.WithLabelValues(kindBad).Inc()
	bad := reject(raw{offset: r.pos}, registry.RejectedUnreadable, cause.Error(), r.cfg.Now().UnixMicro())
	r.skipTo(r.pos + 1)
	r.pending.Rejected = append(r.pending.Rejected, *bad)
	r.stuck, r.hopeless = 0, true
}
