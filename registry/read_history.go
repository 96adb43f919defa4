package registry

import (
	"context"
	"fmt"
)

type eventRow struct {
	Seq        int64  `db:"seq"`
	HappenedAt int64  `db:"happened_at"`
	Kind       string `db:"kind"`
	Service    string `db:"service"`
	IID        string `db:"iid"`
	Actor      string `db:"actor"`
	Cause      string `db:"cause"`
	Detail     []byte `db:"detail"`
	Revision   int64  `db:"revision"`
}

// ListEvents is a page of events.
func (s *Store) ListEvents(ctx context.Context, f EventFilter) ([]Event, error) {
	w := &where{}
	if f.Service != "" {
		w.add("service = ?", f.Service)
	}
	if f.ID != "" {
		w.add("iid = ?", f.ID)
	}
	in(w, "kind", f.Kinds)
	if f.Since != 0 {
		w.add("happened_at >= ?", f.Since)
	}
	if f.Before != 0 {
		w.add("seq < ?", f.Before)
	}
	order := "DESC"
	if f.After != nil {
		w.add("seq > ?", *f.After)
		order = "ASC"
	}
	rows, err := list[eventRow](ctx, s.db, "events",
		"SELECT seq, happened_at, kind, service, iid, actor, cause, detail, revision FROM event"+w.String()+
			" ORDER BY seq "+order+" LIMIT ?", append(w.args, pageLimit(f.Limit))...)
	if err != nil {
		return nil, err
	}
	events := make([]Event, len(rows))
	for i, r := range rows {
		events[i] = Event{
			Seq: r.Seq, At: r.HappenedAt, Kind: r.Kind, Service: r.Service, ID: r.IID, Actor: r.Actor, Cause: r.Cause,
			Detail: r.Detail, Revision: r.Revision,
		}
	}
	return events, nil
}

// LastEventSeq is the number of the newest event; 0: there is none. Events are numbered in the order in which they
// become visible, so after this call none with that number or a lower one will appear.
func (s *Store) LastEventSeq(ctx context.Context) (int64, error) {
	return one[int64](ctx, s.db, "last event", "SELECT COALESCE(MAX(seq), 0) FROM event")
}

type rejectedRow struct {
	Part       int32  `db:"part"`
	Offset     int64  `db:"log_offset"`
	Key        string `db:"record_key"`
	Reason     string `db:"reason"`
	Detail     string `db:"detail"`
	Value      []byte `db:"value"`
	ReceivedAt int64  `db:"received_at"`
}

// ListRejected is a page of the kept rejected records, newest first.
func (s *Store) ListRejected(ctx context.Context, f RejectedFilter) ([]RejectedView, error) {
	w := rejectedWhere(f)
	if k := f.After; k != nil {
		w.add("received_at < ? OR (received_at = ? AND (part < ? OR (part = ? AND log_offset < ?)))",
			k.At, k.At, k.Part, k.Part, k.Offset)
	}
	rows, err := list[rejectedRow](ctx, s.db, "rejected records",
		"SELECT part, log_offset, record_key, reason, detail, value, received_at FROM rejected"+w.String()+
			" ORDER BY received_at DESC, part DESC, log_offset DESC LIMIT ?", append(w.args, pageLimit(f.Limit))...)
	if err != nil {
		return nil, err
	}
	views := make([]RejectedView, len(rows))
	for i, r := range rows {
		views[i] = RejectedView{Part: r.Part, Rejected: Rejected{
			Offset: r.Offset, Key: r.Key, Reason: r.Reason, Detail: r.Detail, Value: r.Value, At: r.ReceivedAt,
		}}
	}
	return views, nil
}

// ReasonCount is how many records were ever rejected for a reason.
type ReasonCount struct {
	Reason string `db:"reason"`
	Count  int64  `db:"n"`
}

// RejectedCounts are the counts by reason, in the order of the reasons, for the reasons and the partition of the filter.
func (s *Store) RejectedCounts(ctx context.Context, f RejectedFilter) ([]ReasonCount, error) {
	w := rejectedWhere(f)
	return list[ReasonCount](ctx, s.db, "rejected counts",
		"SELECT reason, SUM(n) AS n FROM rejected_count"+w.String()+" GROUP BY reason ORDER BY reason", w.args...)
}

func rejectedWhere(f RejectedFilter) *where {
	w := &where{}
	in(w, "reason", f.Reasons)
	if f.Part != nil {
		w.add("part = ?", *f.Part)
	}
	return w
}

type versionRow struct {
	Version   int64  `db:"version"`
	Epoch     int64  `db:"epoch"`
	Digest    string `db:"digest"`
	Records   int    `db:"records"`
	Changed   int    `db:"changed"`
	Cause     string `db:"cause"`
	Revision  int64  `db:"revision"`
	CreatedAt int64  `db:"created_at"`
}

func (r versionRow) version() Version { return Version(r) } // field by field

const versionColumns = "SELECT version, epoch, digest, records, changed, cause, revision, created_at FROM topology_version"

// ListVersions is a page of the kept topology versions, newest first; before, when not 0, only older ones than that.
func (s *Store) ListVersions(ctx context.Context, before int64, limit int) ([]Version, error) {
	w := &where{}
	if before != 0 {
		w.add("version < ?", before)
	}
	rows, err := list[versionRow](ctx, s.db, "topology versions",
		versionColumns+w.String()+" ORDER BY version DESC LIMIT ?", append(w.args, pageLimit(limit))...)
	if err != nil {
		return nil, err
	}
	versions := make([]Version, len(rows))
	for i, r := range rows {
		versions[i] = r.version()
	}
	return versions, nil
}

// GetVersion is a kept topology version, the newest for 0, or ErrNotFound.
func (s *Store) GetVersion(ctx context.Context, version int64) (Version, error) {
	if version == 0 {
		r, err := one[versionRow](ctx, s.db, "newest topology version", versionColumns+" ORDER BY version DESC LIMIT 1")
		return r.version(), err
	}
	r, err := one[versionRow](ctx, s.db, fmt.Sprintf("topology version %d", version), versionColumns+" WHERE version = ?", version)
	return r.version(), err
}

// VersionsAfter are the numbers of the kept versions above version, ascending.
func (s *Store) VersionsAfter(ctx context.Context, version int64) ([]int64, error) {
	return list[int64](ctx, s.db, "topology versions",
		"SELECT version FROM topology_version WHERE version > ? ORDER BY version", version)
}

type topologyRecordRow struct {
	Key   string `db:"record_key"`
	Value []byte `db:"value"`
}

// VersionRecords is a page of the records that are live in a version: those that begin with prefix and come after the
// key after, by key. It does not look whether the version is kept: a caller that reads the version after the records
// and still finds it has a whole answer, since trimming removes a version before its records.
func (s *Store) VersionRecords(ctx context.Context, version int64, prefix, after string, limit int) ([]TopologyRecord, error) {
	w := &where{}
	w.add("version <= ?", version)
	w.prefix("record_key", prefix)
	if after != "" {
		w.add("record_key > ?", after)
	}
	rows, err := list[topologyRecordRow](ctx, s.db, fmt.Sprintf("records of topology version %d", version),
		`SELECT r.record_key, r.value
		 FROM (SELECT record_key, MAX(version) AS newest FROM topology_record`+w.String()+` GROUP BY record_key) n
		 JOIN topology_record r ON r.record_key = n.record_key AND r.version = n.newest
		 WHERE r.value IS NOT NULL ORDER BY r.record_key LIMIT ?`, append(w.args, pageLimit(limit))...)
	if err != nil {
		return nil, err
	}
	records := make([]TopologyRecord, len(rows))
	for i, r := range rows {
		records[i] = TopologyRecord(r)
	}
	return records, nil
}
