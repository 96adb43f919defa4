package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"
)

// Reasons why a record is rejected, beside those of a beat (heartbeat.Reasons).
const (
	RejectedPulse      = "bad_pulse"
	RejectedInvalid    = "invalid"       // no beat, for a reason without a code
	RejectedPanic      = "decoder_panic" // a bug of ours; the record is kept so that it can be found
	RejectedUnreadable = "unreadable"    // the broker's bytes at this offset are no record
	RejectedNotApplied = "not_applied"   // the registry refused this very record, again and again
)

// RejectedReasons lists them.
func RejectedReasons() []string {
	return []string{RejectedPulse, RejectedInvalid, RejectedPanic, RejectedUnreadable, RejectedNotApplied}
}

// maxRejectedValue is how many bytes are kept of an unusable record.
const maxRejectedValue = 4096

var rejectedCols = []string{"part", "log_offset", "record_key", "reason", "detail", "value", "received_at"}

// writeRejected counts unusable records by reason and keeps the newest ones of the partition.
func (s *Store) writeRejected(ctx context.Context, tx *sqlx.Tx, part int32, list []Rejected) error {
	if len(list) == 0 {
		return nil
	}
	if err := s.countRejected(ctx, tx, part, list); err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b Rejected) int { return int(min(max(a.Offset-b.Offset, -1), 1)) })
	if extra := len(list) - s.opt.RejectedKeep; extra > 0 {
		list = list[extra:]
	}
	err := chunks(list, writeChunk, func(rows []Rejected) error {
		args := make([]any, 0, len(rows)*len(rejectedCols))
		for i := range rows {
			r := &rows[i]
			value := r.Value[:min(len(r.Value), maxRejectedValue)]
			args = append(args, part, r.Offset, cutText(r.Key, 255), cutASCII(r.Reason, 32), cutText(r.Detail, 1024),
				append([]byte{}, value...), r.At)
		}
		_, err := tx.ExecContext(ctx, s.dialect.upsert("rejected", "part, log_offset", rejectedCols, len(rows)), args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep %d unusable records: %w", len(list), err)
	}
	return s.trimRejected(ctx, tx, part)
}

func (s *Store) countRejected(ctx context.Context, tx *sqlx.Tx, part int32, list []Rejected) error {
	by := map[string]int64{}
	for i := range list {
		by[cutASCII(list[i].Reason, 32)]++
	}
	cols := []string{"part", "reason", "n"}
	q := insert("rejected_count", cols, 1) + s.dialect.onConflict("part, reason") + `n = n + ` + s.dialect.incoming("n")
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		if _, err := tx.ExecContext(ctx, q, part, reason, by[reason]); err != nil {
			return fmt.Errorf("count unusable records: %w", err)
		}
	}
	return nil
}

// trimRejected goes by when records were received: offsets begin again when a topic is created anew.
func (s *Store) trimRejected(ctx context.Context, tx *sqlx.Tx, part int32) error {
	var offsets []int64
	err := tx.SelectContext(ctx, &offsets, `SELECT log_offset FROM rejected WHERE part = ?
		ORDER BY received_at DESC, log_offset DESC LIMIT 100000 OFFSET ?`, part, s.opt.RejectedKeep)
	if err != nil {
		return fmt.Errorf("find old unusable records: %w", err)
	}
	return chunks(offsets, inChunk, func(old []int64) error {
		args := append([]any{part}, anys(old)...)
		_, err := tx.ExecContext(ctx, `DELETE FROM rejected WHERE part = ? AND log_offset IN (`+marks(len(old))+`)`, args...)
		if err != nil {
			return fmt.Errorf("drop old unusable records: %w", err)
		}
		return nil
	})
}
