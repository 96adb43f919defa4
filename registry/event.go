package registry

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

var eventCols = []string{"happened_at", "kind", "service", "iid", "actor", "cause", "detail", "revision"}

// insertEvents writes events under the revision lock, so that they become visible in the order of their numbers.
func insertEvents(ctx context.Context, tx *sqlx.Tx, events []Event) error {
	return chunks(events, writeChunk, func(part []Event) error {
		args := make([]any, 0, len(part)*len(eventCols))
		for i := range part {
			e := &part[i]
			args = append(args, e.At, cutASCII(e.Kind, 32), cutASCII(e.Service, 64), cutASCII(e.ID, 64),
				cutText(e.Actor, 128), cutText(e.Cause, 255), string(e.Detail), e.Revision)
		}
		if _, err := tx.ExecContext(ctx, insert("event", eventCols, len(part)), args...); err != nil {
			return fmt.Errorf("write %d events: %w", len(part), err)
		}
		return nil
	})
}

// AddEvent writes an event of another role, such as a declared name that wins over a derived one. Seq and Revision are
// filled here, and At when it is 0. Detail is JSON or nil, at most 64 KiB.
func (s *Store) AddEvent(ctx context.Context, e Event) error {
	if len(e.Detail) > maxText {
		return fmt.Errorf("registry: add event %s: detail of %d bytes, at most %d", e.Kind, len(e.Detail), maxText)
	}
	if e.At == 0 {
		e.At = s.now()
	}
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		l, err := s.lockLedger(ctx, tx)
		if err != nil {
			return err
		}
		e.Revision = l.n
		return insertEvents(ctx, tx, []Event{e})
	})
	if err != nil {
		return fmt.Errorf("registry: add event %s: %w", e.Kind, err)
	}
	return nil
}
