package confgen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// errAgain: what this leader believes does not fit what it has just seen; it must read everything anew.
var errAgain = errors.New("state must be read again")

// term is one leadership. It is used by one goroutine.
//
// It holds three contents, each the cause of the next: book.want (what the registry says now), stored (the newest version
// in the database), mirror (what stands on the topic). A step makes the second like the first by a new version, and the
// third like the second by appending what differs.
type term struct {
	g   *Generator
	l   *lease
	log zerolog.Logger

	book     *book
	revision int64
	reload   bool // the changes since revision can't be told: load a snapshot

	stored    content
	version   int64           // of stored; 0: there is none
	unstored  map[string]bool // keys for which want may differ from stored
	mirror    *mirror
	unwritten map[string]bool // keys for which stored may differ from the mirror
	fresh     map[string]bool // those of them that a new version changed; the others are repairs
	damaged   bool            // the records of the newest version are not all there: a new version must follow
	reason    string          // cause of the newest version, for the commit
	made      time.Time       // when the newest version was made, likewise

	reports    []report      // of the agents
	agents     topology.Pair // highest epoch and, on its own, highest version of the plausible ones
	firstSeen  int64         // epoch from which on records are this term's own; see ahead
	cleared    topology.Pair // epoch and version up to which no hold is wanted any more
	held       bool          // a hold was sat out in this term, and the database has not gone back since
	untold     bool          // there may be notes that were not told
	complained string        // of what is declared, last
	muteAt     time.Time     // when telling failed last
	troubles   *troubles
	ignoredAt  time.Time // when implausible reports were told last
	trouble    error     // what keeps this round from publishing

	commitAt, agentsAt, auditAt time.Time // when last done
}

func newTerm(g *Generator, l *lease) *term {
	return &term{g: g, l: l, log: g.log, stored: newContent(), fresh: map[string]bool{}, troubles: newTroubles(g.log)}
}

// run works until ctx ends or the lease is lost, and says why it ended.
func (t *term) run(ctx context.Context) error {
	again := t.g.cfg.Poll
	for {
		t.trouble = nil
		err := t.begin(ctx)
		if err == nil {
			t.troubles.works("begin")
		}
		for err == nil {
			if err = t.step(ctx); err == nil {
				again = t.g.cfg.Poll
				err = sleep(ctx, t.g.cfg.Poll)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fenced(err) || errors.Is(err, errLeaseOver) {
			t.g.state.work(err)
			return err
		}
		t.failed(ctx, "begin", fmt.Errorf("reading everything again: %w", err))
		t.g.state.work(err)
		if err := sleep(ctx, again); err != nil {
			return err
		}
		again = max(t.g.cfg.Poll, min(2*again, slowest)) // it reads all there is each time
		// The cause may be that another leads: ask before anything else.
		if err := t.l.renew(ctx); fenced(err) || errors.Is(err, errLeaseOver) {
			return err
		}
	}
}

// begin reads the topic, the agents' reports, the database's newest version and the registry, in this order: whoever
// publishes writes the database first, so what is seen before can't be ahead of what is read after, unless the
// database was restored.
func (t *term) begin(ctx context.Context) error {
	if err := t.readTopic(ctx); err != nil {
		return err
	}
	if err := t.readAgents(ctx); err != nil {
		return err
	}
	if err := t.readStored(ctx); err != nil {
		return err
	}
	t.mirror.place(t.version)
	t.weigh()
	if t.topicAhead() || t.agentsAhead() && !t.held {
		if err := t.hold(ctx); err != nil {
			return err
		}
		if err := t.readTopic(ctx); err != nil {
			return err
		}
		if err := t.readAgents(ctx); err != nil {
			return err
		}
		t.mirror.place(t.version)
		t.weigh()
		t.held = true
		t.clear()
	}
	if err := t.raise(ctx); err != nil {
		return err
	}
	if err := t.readRegistry(ctx); err != nil {
		return err
	}
	t.commitAt, t.auditAt = time.Time{}, time.Now()
	t.g.metrics.epoch.Set(float64(t.l.current().Epoch))
	t.g.metrics.version.Set(float64(t.version))
	return nil
}

// slowest is how long at most a leader waits until it reads everything again.
const slowest = 10 * time.Second

// whole is how many times longer than usual a call may take that reads all there is. The lease is renewed meanwhile.
const whole = 12

// readTopic reads the whole topic.
func (t *term) readTopic(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, whole*t.g.cfg.KafkaTimeout)
	defer cancel()
	m := newMirror()
	extent, err := t.g.cfg.Topic.Read(ctx, -1, m.take)
	if err != nil {
		return fmt.Errorf("confgen: read the topic: %w", err)
	}
	m.extent = extent
	t.mirror = m
	t.compare()
	return nil
}

// compare finds all keys for which stored differs from the mirror.
func (t *term) compare() {
	t.unwritten = map[string]bool{}
	for key := range t.mirror.last {
		t.unwritten[key] = true
	}
	for key := range t.stored.records {
		t.unwritten[key] = true
	}
	maps.DeleteFunc(t.unwritten, func(key string, _ bool) bool { return t.mirror.holds(key, t.stored.records[key]) })
}

// readStored reads the newest version from the database.
func (t *term) readStored(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, whole*t.g.cfg.DatabaseTimeout)
	defer cancel()
	v, err := t.g.cfg.Versions.LatestVersion(ctx)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return fmt.Errorf("confgen: read the newest version: %w", err)
	}
	records, err := t.g.cfg.Versions.LatestRecords(ctx)
	if err != nil {
		return fmt.Errorf("confgen: read the records of version %d: %w", v.Version, err)
	}
	if v.Version < t.version {
		t.wentBack()
	}
	t.version, t.reason, t.made = v.Version, v.Cause, time.UnixMicro(v.CreatedAt)
	t.stored = newContent()
	for _, r := range records {
		t.stored.set(r.Key, r.Value)
	}
	t.damaged = v.Version > 0 && t.stored.digest.String() != v.Digest
	if t.damaged {
		t.log.Error().Int64("version", v.Version).Msg("the records of the newest version do not give its digest; a new version follows")
	}
	t.compare()
	return nil
}

// readRegistry fills the book, and finds all keys for which it differs from stored.
func (t *term) readRegistry(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, whole*t.g.cfg.DatabaseTimeout)
	defer cancel()
	snap, err := t.g.cfg.Source.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("confgen: read the registry: %w", err)
	}
	start := time.Now()
	t.book = newBook(nil)
	t.prime()
	t.book.load(snap)
	t.book.rebuild()
	t.readDeclared()
	t.revision, t.reload = snap.Revision, false
	t.unstored = map[string]bool{}
	for key := range t.book.want.records {
		t.unstored[key] = true
	}
	for key := range t.stored.records {
		t.unstored[key] = true
	}
	maps.DeleteFunc(t.unstored, func(key string, _ bool) bool { return t.book.want.same(&t.stored, key) })
	t.g.metrics.build.Observe(time.Since(start).Seconds())
	t.g.metrics.revision.Set(float64(t.revision))
	t.untold = true
	return nil
}

// readDeclared complains when the declared topology can't be read.
func (t *term) readDeclared() {
	if n := t.book.unread; len(n) > 0 && n[0].Text != t.complained {
		t.complained = n[0].Text
		t.g.metrics.failures.WithLabelValues("declared").Inc()
		t.log.Error().Msg(t.complained)
	}
}

// prime tells the book what was published last.
func (t *term) prime() {
	records := make([]topology.Record, 0, len(t.stored.records))
	parts := map[string]int{}
	for key, value := range t.stored.records {
		records = append(records, topology.Record{Key: key, Value: value})
		if service, ok := topology.ServiceOf(key); ok {
			parts[service]++
		}
	}
	c, err := topology.DecodeRecords(records)
	if err != nil {
		t.log.Warn().Err(err).Msg("can't read the records of the newest version; all are written anew")
		return
	}
	t.book.prime(c, parts)
}

func (t *term) highestEpoch() int64   { return max(t.mirror.epoch, t.agents.Epoch) }
func (t *term) highestVersion() int64 { return max(t.mirror.version, t.agents.Version) }

// beyond reports whether p has an epoch or version that the database has not handed out. An epoch that this leadership got
// by raising or has not yet written with was handed out to nobody before.
func (t *term) beyond(p topology.Pair) bool {
	if p.Epoch <= t.cleared.Epoch && p.Version <= t.cleared.Version {
		return false
	}
	known := t.l.current().Epoch
	if t.firstSeen != known {
		known-- // nothing was written in it yet
	}
	return p.Epoch > known || p.Version > t.version
}

func (t *term) topicAhead() bool { return t.beyond(t.mirror.pair()) }

// agentsAhead is a reason to hold but once in a term, unless the database was seen to go back: agents are ahead of a topic
// that is not when it was wiped together with a restored database, and that needs one hold. A report is but a beat. Whoever
// can forge these, or an agent of another installation, must not keep the topology from moving.
func (t *term) agentsAhead() bool { return t.beyond(t.agents) }

// clear says that what the topic and the agents have now is reason for no further hold; it is gone above all the same.
func (t *term) clear() {
	t.cleared = topology.Pair{Epoch: t.highestEpoch(), Version: t.highestVersion()}
}

// wentBack: the database was restored in this term.
func (t *term) wentBack() { t.held, t.cleared = false, topology.Pair{} }

// raise makes the epoch one in which nothing was written that is not this term's.
func (t *term) raise(ctx context.Context) error {
	now := t.l.current().Epoch
	if highest := t.highestEpoch(); highest > now || (highest == now && t.firstSeen != now) {
		if highest >= highestFollowed {
			return fmt.Errorf("confgen: the topic has a record of epoch %d, too high to go above: delete the topic and let it be made anew", highest)
		}
		if err := t.l.raise(ctx, highest+1); err != nil {
			return err
		}
		now = t.l.current().Epoch
		t.g.metrics.epoch.Set(float64(now))
		t.log.Warn().Int64("epoch", now).Msg("raised the epoch above what the topic and the agents have")
	}
	t.firstSeen = now
	return nil
}

// pair is what this term writes with.
func (t *term) pair() topology.Pair {
	return topology.Pair{Epoch: t.l.current().Epoch, Version: t.version}
}
