package confgen

import (
	"context"
	"fmt"
	"time"

	"github.com/upstrand/upstrand/registry"
)

// longestStale bounds how long one instance's own stale limit can make a hold last.
const longestStale = 5 * time.Minute

// hold publishes nothing until the restored database has caught up with the world. Its rows bring back instances that
// are dead by now and whose addresses others may own, so the beats that were on the topic when the hold began must have
// been applied, and then everybody gets one stale limit of stream clock to be found silent. If the clocks stand still,
// because no listener runs, the hold goes on: agents keep what they have.
func (t *term) hold(ctx context.Context) error {
	limit, err := t.holdLimit(ctx)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("the topic or an agent is at epoch %d, version %d, ahead of the database (epoch %d, version %d), which was restored: nothing is published for %s of stream clock",
		t.highestEpoch(), t.highestVersion(), t.l.current().Epoch, t.version, limit)
	t.log.Warn().Dur("limit", limit).Msg(text)
	t.g.state.setNote(text)
	t.g.metrics.holds.Inc()
	t.g.metrics.holding.Set(1)
	defer t.g.state.setNote("")
	defer t.g.metrics.holding.Set(0)
	defer t.g.metrics.holdWaiting.Set(0)
	t.notify(ctx, Note{Kind: NoteRestored, Text: text})
	gate := newGate(limit)
	for {
		done, err := t.lookAtStreams(ctx, gate)
		if err != nil {
			t.failed(ctx, "hold", err)
		}
		t.g.state.work(err) // to hold is no failure
		if done {
			break
		}
		if err := sleep(ctx, t.g.cfg.Poll); err != nil {
			return err
		}
	}
	t.log.Info().Msg("the stream clocks have caught up; publishing again")
	t.notify(ctx, Note{Kind: NoteResumed, Text: "the stream clocks have caught up"})
	return nil
}

// holdLimit is the longest stale limit of those that the registry believes alive, within bounds.
func (t *term) holdLimit(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, whole*t.g.cfg.DatabaseTimeout)
	defer cancel()
	snap, err := t.g.cfg.Source.Snapshot(ctx)
	if err != nil {
		return 0, fmt.Errorf("confgen: read the registry: %w", err)
	}
	limit := t.g.cfg.StaleHold
	for _, in := range snap.Instances {
		if in.Liveness.Routable() {
			limit = max(limit, min(in.StaleAfter, longestStale))
		}
	}
	return limit, nil
}

func (t *term) notify(ctx context.Context, n Note) {
	if err := t.event(ctx, n); err != nil {
		t.failed(ctx, "event", err)
	}
}

// lookAtStreams reads the clocks before the ends: a position that was true then can't be beyond an end read later.
func (t *term) lookAtStreams(ctx context.Context, gate *gate) (bool, error) {
	db, cancel := context.WithTimeout(ctx, t.g.cfg.DatabaseTimeout)
	defer cancel()
	streams, err := t.g.cfg.Fleet.Streams(db)
	if err != nil {
		return false, fmt.Errorf("confgen: read the stream clocks: %w", err)
	}
	call, cancel := context.WithTimeout(ctx, t.g.cfg.KafkaTimeout)
	defer cancel()
	ends, err := t.g.cfg.Heartbeats.HeartbeatEnds(call)
	if err != nil {
		return false, fmt.Errorf("confgen: read the ends of the heartbeat topic: %w", err)
	}
	waiting := gate.look(streams, ends)
	t.g.metrics.holdWaiting.Set(float64(waiting))
	return len(ends) > 0 && waiting == 0, nil
}

// gate is the pure part of a hold. It opens when each partition of the heartbeat topic (a) has been applied up to the
// end that it had when it was first looked at, and (b) its clock has moved on by the limit since then.
type gate struct {
	limit time.Duration
	parts map[int32]*gatePart
}

type gatePart struct {
	need    int64         // position to reach
	beyond  int64         // a position that the log can't have: the topic was made anew, and its listener must notice; 0: none
	reached bool          // (a)
	clock   time.Duration // when (a) came true
}

func newGate(limit time.Duration) *gate { return &gate{limit: limit, parts: map[int32]*gatePart{}} }

// look takes the streams and, read after them, the ends of the log, and says for how many partitions it still waits.
func (g *gate) look(streams []registry.StreamState, ends map[int32]int64) int {
	at := make(map[int32]registry.StreamState, len(streams))
	for _, s := range streams {
		at[s.Part] = s
	}
	waiting := 0
	for part, end := range ends {
		p := g.parts[part]
		if p == nil {
			p = &gatePart{need: end}
			g.parts[part] = p
		}
		s, ok := at[part]
		if !ok || !p.done(s, end, g.limit) {
			waiting++
		}
	}
	return waiting
}

func (p *gatePart) done(s registry.StreamState, end int64, limit time.Duration) bool {
	if end < p.need { // made anew while we wait
		p.need, p.reached = end, false
	}
	if s.NextOffset > end {
		p.beyond, p.reached = s.NextOffset, false
	}
	if p.beyond > 0 {
		if s.NextOffset >= p.beyond {
			return false
		}
		p.beyond = 0
	}
	if p.reached && s.Clock < p.clock {
		p.reached = false
	}
	if !p.reached {
		if s.NextOffset < p.need {
			return false
		}
		p.reached, p.clock = true, s.Clock
	}
	return s.Clock-p.clock >= limit
}
