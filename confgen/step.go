package confgen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// step is one round. An error ends the round-by-round work: everything is read again, or the lease is lost. Failures
// that the next round can mend are told and counted here.
func (t *term) step(ctx context.Context) error {
	t.trouble = nil
	err := t.round(ctx)
	if err == nil && ctx.Err() == nil {
		t.g.state.work(t.trouble)
	}
	return err
}

func (t *term) round(ctx context.Context) error {
	if time.Since(t.agentsAt) >= t.g.cfg.AgentInterval {
		if err := t.checkAgents(ctx); err != nil {
			return err
		}
	}
	if err := t.tail(ctx); err != nil {
		if errors.Is(err, errAgain) {
			return err
		}
		// What can't be read can't be published to; a version that nobody could get would only be noise.
		t.failed(ctx, "topic", err)
		return nil
	}
	t.troubles.works("topic")
	if err := t.poll(ctx); err != nil {
		if errors.Is(err, errAgain) {
			return err
		}
		t.failed(ctx, "registry", err)
	} else {
		t.troubles.works("registry")
	}
	if err := t.store(ctx); err != nil {
		return err
	}
	if err := t.publish(ctx); err != nil {
		return err
	}
	t.tell(ctx)
	return nil
}

// failed counts a failure, and tells it when it is new or has not been told for a while: rounds are many.
func (t *term) failed(ctx context.Context, op string, err error) {
	if ctx.Err() != nil {
		return
	}
	t.g.metrics.failures.WithLabelValues(op).Inc()
	if op != "agents" && op != "event" {
		t.trouble = err
	}
	t.troubles.failed(op, err)
}

// checkAgents looks for an agent that is ahead of the database. After the hold of this term what comes next is only gone
// above: raise sees to the epoch, store to the version.
func (t *term) checkAgents(ctx context.Context) error {
	if err := t.readAgents(ctx); err != nil {
		t.failed(ctx, "agents", err)
		return nil
	}
	t.troubles.works("agents")
	t.weigh()
	if t.agentsAhead() && t.held {
		t.log.Warn().Int64("epoch", t.agents.Epoch).Int64("version", t.agents.Version).Msg("an agent reports more than was ever published here; going above it")
		t.clear()
		return t.raise(ctx)
	}
	if t.agentsAhead() {
		return fmt.Errorf("confgen: an agent reports up to epoch %d, version %d: %w", t.agents.Epoch, t.agents.Version, errAgain)
	}
	return nil
}

// tail reads what has come onto the topic. A log that lost its beginning or its end, and the audit, read all of it.
func (t *term) tail(ctx context.Context) error {
	start := time.Now()
	defer func() { t.g.metrics.topic.Observe(time.Since(start).Seconds()) }()
	if start.Sub(t.auditAt) >= t.g.cfg.AuditInterval {
		t.auditAt = start // one that fails must not stand in the way of the work
		return t.audit(ctx)
	}
	call, cancel := context.WithTimeout(ctx, t.g.cfg.KafkaTimeout)
	defer cancel()
	extent, err := t.g.cfg.Topic.Read(call, t.mirror.extent.End, func(m topology.Message) {
		t.mirror.take(m)
		t.unwritten[m.Key] = true
	})
	if err != nil {
		// Some records may have come by already. The next round reads from the same place and takes them twice, which at
		// worst makes it write a record once more.
		return fmt.Errorf("confgen: follow the topic: %w", err)
	}
	if t.mirror.lost(extent) {
		t.log.Warn().Int64("start", extent.Start).Int64("end", extent.End).Int64("known_end", t.mirror.extent.End).Msg("the topic lost records; comparing all of it")
		return t.audit(ctx)
	}
	t.mirror.extent = extent
	delete(t.unwritten, topology.KeyCommit)
	return t.checkTopic()
}

// audit reads the whole topic anew and compares all of it.
func (t *term) audit(ctx context.Context) error {
	if err := t.readTopic(ctx); err != nil {
		return err
	}
	return t.checkTopic()
}

func (t *term) checkTopic() error {
	t.mirror.place(t.version)
	if t.topicAhead() {
		return fmt.Errorf("confgen: the topic is at epoch %d, version %d: %w", t.mirror.epoch, t.mirror.version, errAgain)
	}
	return nil
}

// poll takes over what changed in the registry.
func (t *term) poll(ctx context.Context) error {
	start := time.Now()
	call, cancel := context.WithTimeout(ctx, t.g.cfg.DatabaseTimeout)
	now, err := t.g.cfg.Source.Revision(call)
	cancel()
	t.g.metrics.poll.Observe(time.Since(start).Seconds())
	t.g.state.database(err)
	if err != nil {
		return fmt.Errorf("confgen: read the registry's revision: %w", err)
	}
	if now < t.revision {
		t.wentBack()
		return fmt.Errorf("confgen: the registry went back from revision %d to %d: %w", t.revision, now, errAgain)
	}
	if now == t.revision && !t.reload {
		return nil
	}
	snap, err := t.changes(ctx)
	if err != nil {
		return fmt.Errorf("confgen: read what changed since revision %d: %w", t.revision, err)
	}
	built := time.Now()
	for _, key := range t.book.rebuild() {
		t.unstored[key] = true
	}
	t.readDeclared()
	t.revision, t.reload = snap.Revision, false
	t.g.metrics.build.Observe(time.Since(built).Seconds())
	t.g.metrics.revision.Set(float64(t.revision))
	t.untold = true
	return nil
}

// changes brings the book up to date: by what changed or, when that can't be told any more or is too much for one call,
// by everything.
func (t *term) changes(ctx context.Context) (registry.Snapshot, error) {
	if t.reload {
		call, cancel := context.WithTimeout(ctx, whole*t.g.cfg.DatabaseTimeout)
		defer cancel()
		snap, err := t.g.cfg.Source.Snapshot(call)
		if err == nil {
			t.book.load(snap)
		}
		return snap, err
	}
	call, cancel := context.WithTimeout(ctx, t.g.cfg.DatabaseTimeout)
	defer cancel()
	snap, err := t.g.cfg.Source.Changes(call, t.revision)
	if err == nil {
		t.book.apply(snap)
	}
	t.reload = errors.Is(err, registry.ErrTooOld) || err != nil && errors.Is(call.Err(), context.DeadlineExceeded)
	return snap, err
}

// store writes a new version into the database when the wanted content is not that of the newest one, or when there is
// none, or when the topic or an agent has a higher one.
func (t *term) store(ctx context.Context) error {
	diff := t.difference()
	highest := t.highestVersion()
	if len(diff) == 0 && t.version > 0 && t.version >= highest && !t.damaged {
		t.book.causes.take()
		t.unstored = map[string]bool{}
		return nil
	}
	next := max(t.version, highest) + 1
	made := time.Now().Truncate(time.Microsecond) // as the database keeps it
	v := registry.Version{
		Version:   next,
		Epoch:     t.l.current().Epoch,
		Digest:    t.book.want.digest.String(),
		Records:   len(t.book.want.records),
		Changed:   len(diff),
		Cause:     t.cause(diff, highest),
		Revision:  t.revision,
		CreatedAt: made.UnixMicro(),
	}
	if err := t.insert(ctx, v, diff); err != nil {
		t.g.metrics.failures.WithLabelValues("version").Inc()
		return err
	}
	for _, r := range diff {
		t.stored.set(r.Key, r.Value)
		t.unwritten[r.Key], t.fresh[r.Key] = true, true
	}
	t.unstored = map[string]bool{}
	t.version, t.reason, t.made, t.damaged = next, v.Cause, made, false
	t.g.metrics.versions.Inc()
	t.g.metrics.version.Set(float64(next))
	t.log.Info().Int64("version", next).Int("changed", len(diff)).Str("cause", v.Cause).Msg("new version")
	return nil
}

func (t *term) difference() []registry.TopologyRecord {
	var diff []registry.TopologyRecord
	for _, key := range slices.Sorted(maps.Keys(t.unstored)) {
		if !t.book.want.same(&t.stored, key) {
			diff = append(diff, registry.TopologyRecord{Key: key, Value: t.book.want.records[key]})
		}
	}
	return diff
}

func (t *term) cause(diff []registry.TopologyRecord, highest int64) string {
	cause := t.book.causes.take()
	switch {
	case t.version > 0 && highest > t.version:
		cause = fmt.Sprintf("above version %d, which the topic or an agent has; %s", highest, cause)
	case cause == "" && t.version == 0:
		cause = "first version"
	case cause == "" && len(diff) > 0:
		cause = cut(diff[0].Key, causeLimit) + " changed"
	case cause == "":
		cause = "records of the version before were missing"
	}
	return cause
}

// manyRecords is how many records of a version may take a good part of the lease to write.
const manyRecords = 500

// insert checks that the database is still the one that was read: a restored one has another newest version. After any
// error it is not known whether the version is there, so everything is read again.
//
// While a version is being written the lease can't be renewed: its row is locked. So much at once begins with a lease that
// is new, and a version that takes longer than that needs a longer Lease.
func (t *term) insert(ctx context.Context, v registry.Version, diff []registry.TopologyRecord) error {
	if len(diff) >= manyRecords {
		if err := t.l.renew(ctx); fenced(err) {
			return err
		}
	}
	ctx, cancel, err := t.l.guard(ctx, t.g.cfg.DatabaseTimeout)
	if err != nil {
		return err
	}
	defer cancel()
	latest, err := t.g.cfg.Versions.LatestVersion(ctx)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return fmt.Errorf("confgen: read the newest version: %w", err)
	}
	if latest.Version != t.version {
		return fmt.Errorf("confgen: the database's newest version is %d, not %d: %w", latest.Version, t.version, errAgain)
	}
	if t.l.left() <= 0 { // the answer may have taken long
		return errLeaseOver
	}
	if err := t.g.cfg.Versions.InsertVersion(ctx, t.l.current(), v, diff); err != nil {
		return fmt.Errorf("confgen: write version %d: %w", v.Version, err)
	}
	return nil
}

// tell makes an event of each note that this process has not told yet. It comes after the publishing, which must not wait
// for it: what takes long goes on in the next round, and what failed is tried again after a while.
func (t *term) tell(ctx context.Context) {
	start := time.Now()
	if !t.untold || start.Sub(t.muteAt) < toldEvery {
		return
	}
	for _, n := range t.book.notes() {
		if t.g.told[n] {
			continue
		}
		if time.Since(start) > t.g.cfg.Poll {
			return
		}
		if err := t.event(ctx, n); err != nil {
			t.muteAt = time.Now()
			t.failed(ctx, "event", err)
			return
		}
		t.troubles.works("event")
		t.g.told[n] = true
	}
	t.untold = false
}

func (t *term) event(ctx context.Context, n Note) error {
	ctx, cancel := context.WithTimeout(ctx, t.g.cfg.DatabaseTimeout)
	defer cancel()
	err := t.g.cfg.Fleet.AddEvent(ctx, registry.Event{
		At: time.Now().UnixMicro(), Kind: n.Kind, Service: n.Service, ID: n.ID,
		Actor: t.g.cfg.Holder, Cause: cut(n.Text, 255), Revision: t.revision,
	})
	if err != nil {
		return fmt.Errorf("confgen: add event %s: %w", n.Kind, err)
	}
	return nil
}
