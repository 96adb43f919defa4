package listener

import (
	"context"
	"errors"
	"time"

	"github.com/upstrand/upstrand/registry"
)

// divide is for a batch that a working database refuses: something in it must be what the registry can't take. The
// batch is cut in two, and again, until one record stands alone. That one is given up, so that it can't stop the stream.
func (a *applier) divide(ctx context.Context, b registry.Batch, cause error) error {
	left, right, ok := halves(b)
	if !ok {
		return a.alone(ctx, b, cause)
	}
	if err := a.apply(ctx, left, time.Time{}); err != nil {
		return err
	}
	return a.apply(ctx, right, time.Time{})
}

// alone deals with a batch of one record that can't be applied: a beat is turned into a bad record. A pulse is never
// given up, nor a bad record: a database that refuses these is broken in a way that giving up records can't help. Giving
// up takes longer with each beat in a row, so that a database that refuses every one for a reason of its own loses few.
//
// It may also be judging that fails, not the record. So there is none here: a batch without a fresh sight of the log's
// end (time.Time{}) is applied without.
func (a *applier) alone(ctx context.Context, b registry.Batch, cause error) error {
	if len(b.Records) != 1 || b.Records[0].Sighting == nil {
		return a.insist(ctx, func() error { return a.attempt(ctx, &b, time.Time{}) }, stands(b), nil)
	}
	a.refused++
	for end := time.Now().Add(min(a.cfg.RetryMax<<min(a.refused, 10), maxCooldown)); ; {
		a.failed(cause)
		if !sleep(ctx, a.cfg.RetryMax) {
			return ctx.Err()
		}
		if err := a.reopen(ctx); err != nil {
			return a.apply(ctx, b, time.Time{}) // the database is away: the beat has all its chances again
		}
		err := a.attempt(ctx, &b, time.Time{})
		if err != nil && !errors.Is(err, registry.ErrFenced) && time.Now().After(end) {
			err = a.giveUp(ctx, b, err) // at once, so that what refused the beat takes this
		}
		if err == nil || errors.Is(err, registry.ErrFenced) {
			a.recovered()
			return err
		}
		cause = err
	}
}

// giveUp applies a batch of one beat with a bad record in the beat's place.
func (a *applier) giveUp(ctx context.Context, b registry.Batch, cause error) error {
	r := b.Records[0]
	bad := reject(raw{offset: r.Offset, key: []byte(r.Sighting.Service + "/" + r.Sighting.ID)}, registry.RejectedNotApplied,
		cause.Error(), a.cfg.Now().UnixMicro())
	b.Records, b.Rejected = nil, []registry.Rejected{*bad}
	if err := a.attempt(ctx, &b, time.Time{}); err != nil {
		return err
	}
	a.log.Error().Err(cause).Str("service", r.Sighting.Service).Str("id", r.Sighting.ID).Int64("offset", r.Offset).
		Msg("registry refuses this beat again and again: given up")
	return nil
}

// halves cuts a batch between two of its records; ok is false when it holds no two.
func halves(b registry.Batch) (left, right registry.Batch, ok bool) {
	if len(b.Records)+len(b.Rejected) < 2 {
		return left, right, false
	}
	at := middle(b)
	left, right = b, b
	left.Next, right.From = at, at
	left.CaughtUp = false
	left.Records, right.Records = cutRecords(b.Records, at)
	left.Rejected, right.Rejected = cutRejected(b.Rejected, at)
	return left, right, true
}

// middle is the offset of a record that has at least one before it, near the middle of the longer list.
func middle(b registry.Batch) int64 {
	if n := len(b.Records); n >= 2 {
		return b.Records[n/2].Offset
	}
	if n := len(b.Rejected); n >= 2 {
		return b.Rejected[n/2].Offset
	}
	return max(b.Records[0].Offset, b.Rejected[0].Offset)
}

func cutRecords(all []registry.Record, at int64) (left, right []registry.Record) {
	for i, r := range all {
		if r.Offset >= at {
			return all[:i:i], all[i:]
		}
	}
	return all, nil
}

func cutRejected(all []registry.Rejected, at int64) (left, right []registry.Rejected) {
	for i, r := range all {
		if r.Offset >= at {
			return all[:i:i], all[i:]
		}
	}
	return all, nil
}
