package registry

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// The rows of table revision.
const (
	ledgerRevision  = 1
	ledgerForgotten = 2
	ledgerDenseID   = 3
)

// ledger is the registry's counters, held under their row locks until the transaction ends. Whoever holds it is the only
// writer of instance, address, service, route_claim, removal, declared and event.
type ledger struct {
	n         int64 // the registry revision
	forgotten int64 // Changes can't tell what happened up to here
	denseID   int64 // the last dense key handed out; never handed out again, also when its instance is deleted

	was    [4]int64
	raised bool
}

// lockLedger takes the revision lock. Locks on stream and hot must have been taken before.
func (s *Store) lockLedger(ctx context.Context, tx *sqlx.Tx) (*ledger, error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, n FROM revision ORDER BY id`+s.dialect.forUpdate())
	if err != nil {
		return nil, fmt.Errorf("lock the revision: %w", err)
	}
	defer func() { _ = rows.Close() }()
	l := &ledger{}
	for rows.Next() {
		var id, n int64
		if err := rows.Scan(&id, &n); err != nil {
			return nil, fmt.Errorf("lock the revision: %w", err)
		}
		if id >= 1 && id < int64(len(l.was)) {
			l.was[id] = n
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("lock the revision: %w", err)
	}
	l.n, l.forgotten, l.denseID = l.was[ledgerRevision], l.was[ledgerForgotten], l.was[ledgerDenseID]
	return l, nil
}

// next is the revision of whatever this transaction changes: one higher than before, whatever the number of changes.
func (l *ledger) next() int64 {
	if !l.raised {
		l.raised = true
		l.n++
	}
	return l.n
}

// nextID hands out the next dense key.
func (l *ledger) nextID() int64 {
	l.denseID++
	return l.denseID
}

// save writes the counters that moved.
func (l *ledger) save(ctx context.Context, tx *sqlx.Tx) error {
	for id, n := range map[int64]int64{ledgerRevision: l.n, ledgerForgotten: l.forgotten, ledgerDenseID: l.denseID} {
		if n == l.was[id] {
			continue
		}
		if _, err := tx.ExecContext(ctx, `UPDATE revision SET n = ? WHERE id = ?`, n, id); err != nil {
			return fmt.Errorf("raise the revision: %w", err)
		}
	}
	return nil
}
