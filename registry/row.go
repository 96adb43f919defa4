package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
)

// name is what an instance is called.
type name struct{ service, id string }

func (n name) String() string { return n.service + "/" + n.id }

// row is an instance with its hot part, as a Stream keeps it and as a transaction works on it.
type row struct {
	Instance
	part  int32
	clock int64 // its partition's clock at its last beat, µs
	seq   int64

	unprovenClock int64 // its partition's clock when it became unproven; 0 when it is not
	staleClock    int64 // likewise stale

	report []byte // an agent's report as stored, nil when not known

	// Scratch of the Apply that carries the same mark.
	mark   uint64
	newest int32 // index of the newest record of it that is accepted, -1: none
	slow   bool  // it takes the slow path in this batch
}

func (r *row) name() name { return name{r.Service, r.ID} }

// instanceCols is in the order of scanRow and instanceArgs.
var instanceCols = []string{
	"id", "service", "iid", "incarnation", "status", "liveness", "cause", "scheme", "ip", "port", "url", "weight",
	"max_conns", "max_fails", "fail_timeout", "slow_start", "zone", "app_version", "tags", "meta", "beat_interval",
	"stale_after", "unproven_clock", "stale_clock", "created_at", "changed_at", "revision",
}

var (
	selectInstance = `SELECT i.` + strings.Join(instanceCols, `, i.`)
	// selectRow also has the hot part. A row without one can't be: both are inserted by one transaction.
	selectRow = selectInstance + `, h.part, h.clock, h.seq FROM instance i JOIN hot h ON h.id = i.id`
)

type scanner interface{ Scan(dest ...any) error }

// scanInstance reads selectInstance and whatever columns follow.
func scanInstance(from scanner, r *row, more ...any) error {
	var tags, meta string
	var failTimeout, slowStart, interval, staleAfter int64
	i, a := &r.Instance, &r.Attrs
	dest := []any{
		&i.DenseID, &i.Service, &i.ID, &i.Incarnation, &i.Status, &i.Liveness, &i.Cause, &a.Scheme, &a.IP, &a.Port, &a.URL,
		&a.Weight, &a.MaxConns, &a.MaxFails, &failTimeout, &slowStart, &a.Zone, &a.Version, &tags, &meta, &interval,
		&staleAfter, &r.unprovenClock, &r.staleClock, &i.CreatedAt, &i.ChangedAt, &i.Revision,
	}
	if err := from.Scan(append(dest, more...)...); err != nil {
		return err
	}
	a.FailTimeout, a.SlowStart = micros(failTimeout), micros(slowStart)
	i.Interval, i.StaleAfter = micros(interval), micros(staleAfter)
	if tags != "" {
		if err := json.Unmarshal([]byte(tags), &a.Tags); err != nil {
			return fmt.Errorf("tags of %s/%s: %w", i.Service, i.ID, err)
		}
	}
	if meta != "" {
		if err := json.Unmarshal([]byte(meta), &a.Meta); err != nil {
			return fmt.Errorf("meta of %s/%s: %w", i.Service, i.ID, err)
		}
	}
	return nil
}

func instanceArgs(args []any, r *row) []any {
	i, a := &r.Instance, &r.Attrs
	return append(args,
		i.DenseID, i.Service, i.ID, i.Incarnation, string(i.Status), string(i.Liveness), cutText(i.Cause, 255),
		a.Scheme, a.IP, a.Port, a.URL, a.Weight, a.MaxConns, a.MaxFails, a.FailTimeout.Microseconds(),
		a.SlowStart.Microseconds(), a.Zone, a.Version, tagsText(a.Tags), metaText(a.Meta), i.Interval.Microseconds(),
		i.StaleAfter.Microseconds(), r.unprovenClock, r.staleClock, i.CreatedAt, i.ChangedAt, i.Revision)
}

// tagsText is the tags as a JSON array, empty when there are none.
func tagsText(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	b, _ := json.Marshal(tags) // strings can't fail
	return string(b)
}

// metaText is the metadata as a JSON object with sorted keys, empty when there is none.
func metaText(meta map[string]string) string {
	if len(meta) == 0 {
		return ""
	}
	b, _ := json.Marshal(meta) // strings can't fail
	return string(b)
}

// queryRows runs a query that begins with selectRow.
func queryRows(ctx context.Context, tx *sqlx.Tx, query string, args []any, each func(*row)) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		r := &row{}
		if err := scanInstance(rows, r, &r.part, &r.clock, &r.seq); err != nil {
			return err
		}
		each(r)
	}
	return rows.Err()
}

// inChunk bounds the lists of IN (…).
const inChunk = 500

// rowsByID loads rows by their dense keys.
func rowsByID(ctx context.Context, tx *sqlx.Tx, ids []int64, each func(*row)) error {
	return chunks(ids, inChunk, func(part []int64) error {
		err := queryRows(ctx, tx, selectRow+` WHERE i.id IN (`+marks(len(part))+`)`, anys(part), each)
		if err != nil {
			return fmt.Errorf("load %d instances: %w", len(part), err)
		}
		return nil
	})
}

// whereNames is the condition for instances by name, one range per service on the (service, iid) key.
func whereNames(names []name, prefix string) (string, []any) {
	byService := map[string][]any{}
	var order []string
	for _, n := range names {
		if _, ok := byService[n.service]; !ok {
			order = append(order, n.service)
		}
		byService[n.service] = append(byService[n.service], n.id)
	}
	var b strings.Builder
	var args []any
	for i, service := range order {
		if i > 0 {
			b.WriteString(" OR ")
		}
		ids := byService[service]
		b.WriteString("(" + prefix + "service = ? AND " + prefix + "iid IN (" + marks(len(ids)) + "))")
		args = append(append(args, service), ids...)
	}
	return b.String(), args
}

// chunks calls fn with runs of at most n elements.
func chunks[T any](list []T, n int, fn func([]T) error) error {
	for len(list) > 0 {
		k := min(n, len(list))
		if err := fn(list[:k]); err != nil {
			return err
		}
		list = list[k:]
	}
	return nil
}

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}
