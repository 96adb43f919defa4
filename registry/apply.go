package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"
)

// outcome is what one transaction did to a Stream. It is taken into the Stream's memory only after the commit, so an
// Apply that failed or is tried again starts from the state before.
type outcome struct {
	to       position
	synced   int64
	world    *world // nil: steady beats only
	scanned  bool   // the index was searched, up to earliest nobody is overdue
	earliest int64
	memory   guardState // nil: nobody was judged
	vanished []int64    // condemned ones that are in the database no more
}

// Apply applies a run of the partition's log, in one transaction: sightings in the order of the log, then, if the batch
// has caught up, the judgement of who fell silent. A batch must begin where the Stream stands (State().NextOffset).
//
// On an error that wraps ErrFenced the partition belongs to somebody else, or (ErrReload) it is unknown whether the batch
// was committed: drop the Stream, and if the partition is still yours, open it again and go on at its NextOffset. After any
// other error nothing has happened, and the same batch can be applied again after a pause.
func (st *Stream) Apply(ctx context.Context, b Batch) (Result, error) {
	if err := st.accepts(&b); err != nil {
		return Result{}, fmt.Errorf("registry: apply %d records of partition %d: %w", len(b.Records), st.part, err)
	}
	var out *outcome
	err := st.change(ctx, func(tx *sqlx.Tx) (err error) {
		out, err = st.apply(ctx, tx, &b)
		return err
	})
	if err != nil {
		return Result{}, fmt.Errorf("registry: apply offsets %d to %d of partition %d: %w", b.From, b.Next, st.part, err)
	}
	return st.keep(&b, out), nil
}

func (st *Stream) accepts(b *Batch) error {
	switch {
	case st.lost != nil:
		return st.lost
	case b.From < 0 || b.Next < b.From:
		return fmt.Errorf("offsets %d to %d are no run of a log", b.From, b.Next)
	case b.From != st.next:
		return fmt.Errorf("the batch begins at offset %d, the stream stands at %d: %w", b.From, st.next, ErrFenced)
	}
	return nil
}

// apply is one attempt at the transaction. Locks are taken in the order that the package comment gives.
func (st *Stream) apply(ctx context.Context, tx *sqlx.Tx, b *Batch) (*outcome, error) {
	p, d := &st.plan, st.store.dialect
	out := &outcome{to: position{next: b.Next, logEnd: b.LogEnd, at: st.store.now()}}
	out.to.clock = p.begin(b, st.clock)
	if err := st.fence(ctx, tx, b.From, &out.to); err != nil {
		return nil, err
	}
	var err error
	if out.synced, err = st.sync(ctx, tx); err != nil {
		return nil, err
	}
	p.classify(b, st.index)
	if err := p.writeSteady(ctx, tx, d, b, st.part); err != nil {
		return nil, err
	}
	if err := st.store.writeRejected(ctx, tx, st.part, append(p.bad, b.Rejected...)); err != nil {
		return nil, err
	}
	c, err := st.suspects(ctx, tx, b, out)
	if err != nil {
		return nil, err
	}
	if len(p.slow) > 0 || c.acts() {
		if err := st.slowPath(ctx, tx, b, c, out); err != nil {
			return nil, err
		}
	}
	return out, st.store.writeReports(ctx, tx, p.reports)
}

// sync reads again what others changed of the instances in the index: claims of their addresses, or operators.
func (st *Stream) sync(ctx context.Context, tx *sqlx.Tx) (int64, error) {
	n, err := revisionOf(ctx, tx)
	if err != nil || n == st.synced {
		return n, err
	}
	if n < st.synced {
		return 0, fmt.Errorf("the registry went back from revision %d to %d: %w", st.synced, n, ErrReload)
	}
	var changed []int64
	if err := tx.SelectContext(ctx, &changed, `SELECT id FROM instance WHERE revision > ?`, st.synced); err != nil {
		return 0, fmt.Errorf("find what others changed: %w", err)
	}
	known := slices.DeleteFunc(changed, func(id int64) bool { return st.index.ids[id] == nil })
	// What was read is committed, so the index may take it whatever becomes of this transaction.
	err = rowsByID(ctx, tx, known, func(r *row) { st.remember(r) })
	return n, err
}

// remember puts a row in the index, with what only the memory has of it.
func (st *Stream) remember(r *row) {
	if old := st.index.ids[r.DenseID]; old != nil && r.report == nil {
		r.report = old.report
	}
	st.index.put(r, st.part)
}

// slowPath does under the revision lock what is not a steady beat: sightings in log order, then the verdicts.
func (st *Stream) slowPath(ctx context.Context, tx *sqlx.Tx, b *Batch, c *court, out *outcome) error {
	p := &st.plan
	sightings := make([]*Sighting, len(p.slow))
	for i, at := range p.slow {
		sightings[i] = b.Records[at].Sighting
	}
	w := newWorld(st.part, st.owner, out.to.at)
	l := loader{store: st.store, tx: tx, w: w}
	if err := l.load(ctx, sightings, c.ids()); err != nil {
		return err
	}
	for i, s := range sightings {
		w.sight(s, p.clocks[p.slow[i]])
	}
	c.execute(w, out.to.clock.micros)
	if err := st.store.flush(ctx, tx, w); err != nil {
		return err
	}
	if w.book.raised && w.book.n == out.synced+1 {
		out.synced = w.book.n // nobody else changed anything in between
	}
	out.world = w
	out.vanished = slices.DeleteFunc(c.ids(), func(id int64) bool { return w.byID[id] != nil })
	return nil
}

// keep takes a committed outcome into memory.
func (st *Stream) keep(b *Batch, out *outcome) Result {
	p := &st.plan
	for _, r := range p.steady {
		s := b.Records[r.newest].Sighting
		r.clock = p.clocks[r.newest]
		if s.Incarnation == r.Incarnation {
			r.seq = max(r.seq, s.Seq)
		}
	}
	for id, rep := range p.reports {
		if r := st.index.ids[id]; r != nil {
			r.report = rep.text
		}
	}
	st.take(&out.to)
	st.synced = out.synced
	if out.scanned {
		st.index.earliest = out.earliest
	}
	if out.memory != nil {
		st.memory, st.judged = out.memory, out.to.clock.micros
	}
	for _, id := range out.vanished {
		if r := st.index.ids[id]; r != nil {
			st.index.drop(r)
		}
	}
	total := p.tally
	if w := out.world; w != nil {
		for _, r := range w.byID {
			st.remember(r)
		}
		total.applied += w.tally.applied
		total.joined, total.stale = w.tally.joined, w.tally.stale
		for _, reason := range slices.Sorted(maps.Keys(w.tally.ignored)) {
			total.ignore(reason, w.tally.ignored[reason])
		}
	}
	return Result{
		Applied: total.applied, Ignored: total.ignored, Joined: total.joined, Stale: total.stale,
		Unproven: len(st.index.unproven), Revision: max(out.synced, revisionAfter(out)), Clock: st.clock.duration(),
	}
}

func revisionAfter(out *outcome) int64 {
	if out.world == nil {
		return 0
	}
	return out.world.book.n
}
