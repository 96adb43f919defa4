package registry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// ErrOldVersion: versions never go back, and this one is not above the latest.
var ErrOldVersion = errors.New("the version is not above the latest one")

var (
	versionCols = []string{"version", "epoch", "digest", "records", "changed", "cause", "revision", "created_at"}
	recordCols  = []string{"record_key", "version", "value"}
)

// recordBytes bounds one statement; a server accepts at least 4 MiB, and a single record is at most 8 MiB (the topic's
// limit), for which max_allowed_packet has its usual 16 MiB or more.
const recordBytes = 1 << 20

// InsertVersion keeps a version and the records that it changed, in one transaction and only while the lease is held in
// its epoch: otherwise ErrFenced. Version must be above the latest: otherwise ErrOldVersion. Epoch and CreatedAt are
// filled when they are 0.
func (s *Store) InsertVersion(ctx context.Context, l Lease, v Version, records []TopologyRecord) error {
	if v.Epoch == 0 {
		v.Epoch = l.Epoch
	}
	if v.Epoch != l.Epoch {
		return fmt.Errorf("registry: insert version %d: epoch %d under a lease of epoch %d", v.Version, v.Epoch, l.Epoch)
	}
	if v.CreatedAt == 0 {
		v.CreatedAt = s.now()
	}
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		if err := s.holdLease(ctx, tx, l); err != nil {
			return err
		}
		latest, _, err := maxVersion(ctx, tx)
		if err != nil {
			return err
		}
		if v.Version <= latest {
			return fmt.Errorf("latest is %d: %w", latest, ErrOldVersion)
		}
		_, err = tx.ExecContext(ctx, insert("topology_version", versionCols, 1), v.Version, v.Epoch, v.Digest, v.Records, v.Changed,
			cutText(v.Cause, 1024), v.Revision, v.CreatedAt)
		if err != nil {
			return err
		}
		return insertRecords(ctx, tx, v.Version, records)
	})
	if err != nil {
		return fmt.Errorf("registry: insert version %d: %w", v.Version, err)
	}
	return nil
}

func insertRecords(ctx context.Context, tx *sqlx.Tx, version int64, records []TopologyRecord) error {
	var args []any
	size := 0
	flush := func() error {
		if len(args) == 0 {
			return nil
		}
		_, err := tx.ExecContext(ctx, insert("topology_record", recordCols, len(args)/len(recordCols)), args...)
		args, size = args[:0], 0
		return err
	}
	for _, r := range records {
		var value any // NULL for a tombstone
		if r.Value != nil {
			value = r.Value
		}
		args = append(args, r.Key, version, value)
		size += len(r.Key) + len(r.Value)
		if size >= recordBytes || len(args) >= writeChunk*len(recordCols) {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func maxVersion(ctx context.Context, q sqlx.QueryerContext) (version, epoch int64, err error) {
	err = q.QueryRowxContext(ctx, `SELECT COALESCE(MAX(version), 0), COALESCE(MAX(epoch), 0) FROM topology_version`).
		Scan(&version, &epoch)
	return version, epoch, err
}

// LatestVersion is the newest version, or ErrNotFound.
func (s *Store) LatestVersion(ctx context.Context) (Version, error) {
	var v Version
	err := s.db.QueryRowContext(ctx, versionColumns+` ORDER BY version DESC LIMIT 1`).
		Scan(&v.Version, &v.Epoch, &v.Digest, &v.Records, &v.Changed, &v.Cause, &v.Revision, &v.CreatedAt)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return Version{}, fmt.Errorf("registry: latest version: %w", err)
	}
	return v, nil
}

// LatestRecords is the content of the newest version: its live records by key, without tombstones.
func (s *Store) LatestRecords(ctx context.Context) ([]TopologyRecord, error) {
	const q = `SELECT r.record_key, r.value FROM topology_record r
		JOIN (SELECT record_key, MAX(version) AS v FROM topology_record GROUP BY record_key) m
			ON m.record_key = r.record_key AND m.v = r.version
		WHERE r.value IS NOT NULL ORDER BY r.record_key`
	rows, err := s.db.QueryContext(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("registry: latest records: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var list []TopologyRecord
	for rows.Next() {
		var r TopologyRecord
		if err := rows.Scan(&r.Key, &r.Value); err != nil {
			return nil, fmt.Errorf("registry: latest records: %w", err)
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("registry: latest records: %w", err)
	}
	return list, nil
}

// TrimVersions forgets all but the newest keep versions, in limited deletes, and returns how many versions it forgot. The
// content of those that stay is kept whole: a record written long ago stays until a newer one of its key is old enough.
func (s *Store) TrimVersions(ctx context.Context, keep int) (int, error) {
	if keep < 1 {
		return 0, fmt.Errorf("registry: trim versions: keep %d, want at least 1", keep)
	}
	var floor int64
	err := s.db.GetContext(ctx, &floor, `SELECT version FROM topology_version ORDER BY version DESC LIMIT 1 OFFSET ?`, keep-1)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("registry: trim versions: %w", err)
	}
	// Versions go before the records that they need, so that whoever finds a version finds it whole.
	n, err := s.deleteInSteps(ctx, `SELECT version FROM topology_version WHERE version < ? LIMIT 500`, []any{floor},
		`DELETE FROM topology_version WHERE version IN `)
	if err != nil {
		return n, fmt.Errorf("registry: trim versions below %d: %w", floor, err)
	}
	// Outdated content before tombstones: one may only go when there is nothing below it that it hides.
	for _, q := range []string{
		`SELECT r.record_key, r.version FROM topology_record r WHERE r.version < ? AND EXISTS (SELECT 1 FROM topology_record n
			WHERE n.record_key = r.record_key AND n.version > r.version AND n.version <= ?) LIMIT 500`,
		`SELECT record_key, version FROM topology_record WHERE version <= ? AND version <= ? AND value IS NULL LIMIT 500`,
	} {
		if err := s.trimRecords(ctx, q, floor); err != nil {
			return n, fmt.Errorf("registry: trim the records of versions below %d: %w", floor, err)
		}
	}
	return n, nil
}

func (s *Store) trimRecords(ctx context.Context, find string, floor int64) error {
	for {
		var old []struct {
			Key     string `db:"record_key"`
			Version int64  `db:"version"`
		}
		if err := s.db.SelectContext(ctx, &old, find, floor, floor); err != nil || len(old) == 0 {
			return err
		}
		err := s.write(ctx, func(tx *sqlx.Tx) error {
			for _, r := range old {
				_, err := tx.ExecContext(ctx, `DELETE FROM topology_record WHERE record_key = ? AND version = ?`, r.Key, r.Version)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// deleteInSteps deletes what find selects (one integer key, with a LIMIT) until it finds nothing, each step a transaction
// of its own, so that no lock is held for long.
func (s *Store) deleteInSteps(ctx context.Context, find string, args []any, del string) (int, error) {
	total := 0
	for {
		var keys []int64
		if err := s.db.SelectContext(ctx, &keys, find, args...); err != nil || len(keys) == 0 {
			return total, err
		}
		err := s.write(ctx, func(tx *sqlx.Tx) error {
			_, err := tx.ExecContext(ctx, del+`(`+marks(len(keys))+`)`, anys(keys)...)
			return err
		})
		if err != nil {
			return total, err
		}
		total += len(keys)
	}
}
