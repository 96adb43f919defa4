package registry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Stream is one partition of the heartbeat topic as its owner applies it: its position, its clock, and an index of the
// instances that beat through it. It is for one goroutine at a time. Once a call has returned an error that wraps
// ErrFenced, all further calls do; open the Stream again then.
type Stream struct {
	store *Store
	part  int32
	owner string

	next      int64 // offset of the next record to apply
	logEnd    int64
	updatedAt int64
	clock     streamClock

	index  *index
	synced int64 // the registry revision up to which the index knows what others changed
	memory guardState
	judged int64 // clock at which the unproven ones were looked at last

	plan plan
	lost error // why the Stream can't be used any more
}

// OpenStream opens a partition for owner, a name for people. The partition's row is created if it is new, with
// NextOffset -1: unknown, to be set by Restart before the first Apply. Opening fences nobody; the first to apply a batch
// from the present offset does.
func (s *Store) OpenStream(ctx context.Context, part int32, owner string) (*Stream, error) {
	if part < 0 {
		return nil, fmt.Errorf("registry: open stream: partition %d is negative", part)
	}
	st := &Stream{store: s, part: part, owner: cutText(owner, 128), index: newIndex(), memory: guardState{}}
	if err := st.create(ctx); err != nil {
		return nil, fmt.Errorf("registry: open stream %d: %w", part, err)
	}
	if err := s.read(ctx, func(tx *sqlx.Tx) error { return st.load(ctx, tx) }); err != nil {
		return nil, fmt.Errorf("registry: open stream %d: %w", part, err)
	}
	return st, nil
}

func (st *Stream) create(ctx context.Context) error {
	var n int
	if err := st.store.db.GetContext(ctx, &n, `SELECT COUNT(*) FROM stream WHERE part = ?`, st.part); err != nil {
		return err
	}
	if n > 0 {
		return nil
	}
	cols := []string{"part", "next_offset", "log_end", "clock", "pulse_session", "pulse_n", "owner", "updated_at"}
	// Whoever creates it second changes nothing.
	q := insert("stream", cols, 1) + st.store.dialect.onConflict("part") + `owner = ` + st.store.dialect.incoming("owner")
	return st.store.write(ctx, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, q, st.part, -1, 0, 0, "", 0, st.owner, st.store.now())
		return err
	})
}

func (st *Stream) load(ctx context.Context, tx *sqlx.Tx) error {
	err := tx.QueryRowContext(ctx, `SELECT next_offset, log_end, clock, pulse_session, pulse_n, updated_at FROM stream
		WHERE part = ?`, st.part).
		Scan(&st.next, &st.logEnd, &st.clock.micros, &st.clock.session, &st.clock.n, &st.updatedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("its row was removed meanwhile: %w", ErrFenced)
	}
	if err != nil {
		return err
	}
	if st.synced, err = revisionOf(ctx, tx); err != nil {
		return err
	}
	return st.loadIndex(ctx, tx)
}

func (st *Stream) loadIndex(ctx context.Context, tx *sqlx.Tx) error {
	const q = ` WHERE h.part = ? AND i.liveness IN ('live', 'unproven')`
	x := newIndex()
	if err := queryRows(ctx, tx, selectRow+q, []any{st.part}, func(r *row) { x.put(r, st.part) }); err != nil {
		return fmt.Errorf("load the instances: %w", err)
	}
	st.index = x
	return nil
}

// State is the position and clock as the last successful call left them.
func (st *Stream) State() StreamState {
	return StreamState{
		Part: st.part, NextOffset: st.next, LogEnd: st.logEnd, Clock: st.clock.duration(), Owner: st.owner,
		UpdatedAt: st.updatedAt,
	}
}

// fence moves the partition from the offset where the caller believes it to be. It is the first statement of every
// transaction of a Stream: no row changed means that somebody else moved it, and nothing else is done. updated_at always
// rises, so the row always changes, whatever the driver counts.
func (st *Stream) fence(ctx context.Context, tx *sqlx.Tx, from int64, to *position) error {
	d := st.store.dialect
	res, err := tx.ExecContext(ctx, `UPDATE stream SET next_offset = ?, clock = ?, pulse_session = ?, pulse_n = ?, log_end = ?,
		owner = ?, updated_at = `+d.greatest("updated_at + 1", "?")+` WHERE part = ? AND next_offset = ?`,
		to.next, to.clock.micros, to.clock.session, to.clock.n, to.logEnd, st.owner, to.at, st.part, from)
	if err != nil {
		return fmt.Errorf("move the offset: %w", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("move the offset: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("partition %d is not at offset %d any more: %w", st.part, from, ErrFenced)
	}
	return nil
}

// position is where a transaction moves a partition to.
type position struct {
	next, logEnd int64
	clock        streamClock
	at           int64 // wall clock, Unix µs
}

// take makes a committed position the Stream's own.
func (st *Stream) take(p *position) {
	st.next, st.logEnd, st.clock, st.updatedAt = p.next, p.logEnd, p.clock, max(p.at, st.updatedAt+1)
}

// change runs one transaction of the Stream and remembers when the partition is lost.
func (st *Stream) change(ctx context.Context, fn func(tx *sqlx.Tx) error) error {
	if st.lost != nil {
		return st.lost
	}
	err := st.store.write(ctx, fn)
	if errors.Is(err, ErrFenced) {
		st.lost = err
	}
	return err
}

// Restart sets the position by hand: the topic was created anew, or its log no longer reaches back to where the registry
// stands. The clock goes on from where it is; the next pulse adds nothing to it. After a step back none does before the log
// was read to its end, since they may have been counted already. It returns ErrFenced if the partition has moved meanwhile.
// A cause makes it an event; none is for the first position of a new partition.
func (st *Stream) Restart(ctx context.Context, offset int64, cause string) error {
	if offset < 0 {
		return fmt.Errorf("registry: restart partition %d: offset %d is negative", st.part, offset)
	}
	to := &position{next: offset, logEnd: max(offset, 0), clock: st.clock, at: st.store.now()}
	if offset < st.next || st.clock.rereading() {
		to.clock.reread()
	} else {
		to.clock.breakPulse()
	}
	err := st.change(ctx, func(tx *sqlx.Tx) error {
		if err := st.fence(ctx, tx, st.next, to); err != nil {
			return err
		}
		if cause == "" {
			return nil
		}
		return st.note(ctx, tx, fmt.Sprintf("partition %d: offset %d → %d: %s", st.part, st.next, offset, cause))
	})
	if err != nil {
		return fmt.Errorf("registry: restart partition %d at %d: %w", st.part, offset, err)
	}
	st.take(to)
	return nil
}

// Adopt takes over the instances of partitions that the topic no longer has, those from partitions on, at the present
// clock: they have one stale limit to show up in another partition. The streams of these partitions are removed, which
// fences whoever still holds one. Only the owner of partition 0 does this; for others it does nothing.
func (st *Stream) Adopt(ctx context.Context, partitions int) error {
	if partitions < 1 {
		return fmt.Errorf("registry: adopt: %d partitions", partitions)
	}
	if st.part != 0 {
		return nil
	}
	to := &position{next: st.next, logEnd: st.logEnd, clock: st.clock, at: st.store.now()}
	adopted := int64(0)
	err := st.change(ctx, func(tx *sqlx.Tx) error {
		if err := st.fence(ctx, tx, st.next, to); err != nil {
			return err
		}
		gone, err := tx.ExecContext(ctx, `DELETE FROM stream WHERE part >= ?`, partitions)
		if err != nil {
			return err
		}
		if adopted, err = st.adopt(ctx, tx, partitions); err != nil {
			return err
		}
		streams, _ := gone.RowsAffected() // both drivers know it
		if adopted == 0 && streams == 0 {
			return nil
		}
		return st.note(ctx, tx, fmt.Sprintf("the topic has %d partitions now: %d instances of %d others adopted",
			partitions, adopted, streams))
	})
	if err != nil {
		return fmt.Errorf("registry: adopt instances of partitions from %d on: %w", partitions, err)
	}
	st.take(to)
	if adopted == 0 {
		return nil
	}
	if err := st.store.read(ctx, func(tx *sqlx.Tx) error { return st.loadIndex(ctx, tx) }); err != nil {
		st.lost = fmt.Errorf("registry: adopt: %w: %w", ErrReload, err)
		return st.lost
	}
	return nil
}

// adopt moves hot rows to this partition's present clock, and with them the clocks at which instances became unproven or
// stale, which mean nothing here.
func (st *Stream) adopt(ctx context.Context, tx *sqlx.Tx, partitions int) (int64, error) {
	var ids []int64
	if err := tx.SelectContext(ctx, &ids, `SELECT id FROM hot WHERE part >= ? ORDER BY id`+st.store.dialect.forUpdate(), partitions); err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, nil
	}
	if _, err := st.store.lockLedger(ctx, tx); err != nil {
		return 0, err
	}
	err := chunks(ids, inChunk, func(part []int64) error {
		in := ` IN (` + marks(len(part)) + `)`
		args := append([]any{st.clock.micros}, anys(part)...)
		if _, err := tx.ExecContext(ctx, `UPDATE hot SET part = 0, clock = ? WHERE id`+in, args...); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE instance SET unproven_clock = ? WHERE liveness = 'unproven' AND id`+in, args...); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE instance SET stale_clock = ? - stale_after - 1 WHERE liveness = 'stale' AND id`+in, args...)
		return err
	})
	return int64(len(ids)), err
}

// note writes an event about the partition itself.
func (st *Stream) note(ctx context.Context, tx *sqlx.Tx, cause string) error {
	l, err := st.store.lockLedger(ctx, tx)
	if err != nil {
		return err
	}
	e := Event{At: st.store.now(), Kind: EventStream, Actor: st.owner, Cause: cause, Revision: l.n}
	return insertEvents(ctx, tx, []Event{e})
}

// revisionOf reads the registry revision without a lock.
func revisionOf(ctx context.Context, q sqlx.QueryerContext) (int64, error) {
	var n int64
	err := q.QueryRowxContext(ctx, `SELECT n FROM revision WHERE id = 1`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("read the revision: %w", err)
	}
	return n, nil
}
