package registry

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/jmoiron/sqlx"
)

// plan sorts the records of one batch into steady beats, which only move the hot row, and the rest, which takes the slow
// path under the revision lock. Its slices are kept by the Stream and used again.
type plan struct {
	mark    uint64     // stamps the scratch of the rows that this Apply looks at
	clocks  []int64    // the partition's clock at each record
	rows    []*row     // the known instance of each record, nil: none
	reasons []string   // why a record moves nothing, as far as the index can tell
	steady  []*row     // rows with an accepted beat, newest says which; those turned slow are taken out
	slow    []int      // records of the slow path, in log order
	bad     []Rejected // sightings that can't be stored
	tally   counts
	reports map[int64]report
	sql     []byte
}

// begin resets the plan and walks the pulses: clocks are settled before anything is written.
func (p *plan) begin(b *Batch, clock streamClock) streamClock {
	n := len(b.Records)
	p.mark++
	p.clocks = slices.Grow(p.clocks[:0], n)[:n]
	p.rows = slices.Grow(p.rows[:0], n)[:n]
	p.reasons = slices.Grow(p.reasons[:0], n)[:n]
	clear(p.rows)
	clear(p.reasons)
	p.steady, p.slow, p.bad = p.steady[:0], p.slow[:0], nil
	p.tally, p.reports = counts{}, nil
	standing, rereading := clock.micros, clock.rereading()
	for i := range b.Records {
		if pulse := b.Records[i].Pulse; pulse != nil {
			clock.pulse(pulse)
			if rereading {
				clock.micros = standing
			}
		}
		p.clocks[i] = clock.micros
	}
	switch {
	case rereading && !b.CaughtUp:
		clock.reread()
	case clock.rereading(): // it is over, and no pulse came to go on from
		clock.breakPulse()
	}
	return clock
}

// classify decides for each record which path it takes. An instance with one record of the slow path takes it with all.
func (p *plan) classify(b *Batch, x *index) {
	for i := range b.Records {
		if s := b.Records[i].Sighting; s != nil {
			p.look(b, i, s, x)
		}
	}
	p.steady = slices.DeleteFunc(p.steady, func(r *row) bool { return r.slow })
	for i := range b.Records {
		s, r := b.Records[i].Sighting, p.rows[i]
		switch {
		case s == nil:
		case r == nil || r.slow:
			p.slowRecord(i, s, b.Records[i].Offset)
		case p.reasons[i] != "":
			p.tally.ignore(p.reasons[i], 1)
		default:
			p.tally.applied++
		}
	}
}

func (p *plan) look(b *Batch, i int, s *Sighting, x *index) {
	r := x.names[name{s.Service, s.ID}]
	p.rows[i] = r
	if r == nil {
		return
	}
	if r.mark != p.mark {
		r.mark, r.newest, r.slow = p.mark, -1, false
	}
	if r.slow {
		return
	}
	seq := r.seq
	if r.newest >= 0 {
		seq = max(seq, b.Records[r.newest].Sighting.Seq)
	}
	if p.reasons[i] = refusedBy(r, seq, s); p.reasons[i] != "" {
		return
	}
	if !steady(r, s) {
		r.slow = true
		delete(p.reports, r.DenseID) // the slow path has it, and any newer one
		return
	}
	if r.newest < 0 {
		p.steady = append(p.steady, r)
	}
	r.newest = int32(i)
	if s.Report == nil || !IsAgent(s.Service) {
		return
	}
	if bytes.Equal(s.Report, r.report) {
		delete(p.reports, r.DenseID) // as stored; what an older beat of the batch said is over
		return
	}
	if p.reports == nil {
		p.reports = map[int64]report{}
	}
	p.reports[r.DenseID] = report{text: s.Report, receivedAt: s.ReceivedAt}
}

func (p *plan) slowRecord(i int, s *Sighting, offset int64) {
	if why := unstorable(s); why != "" {
		p.tally.ignore(IgnoredUnstorable, 1)
		p.bad = append(p.bad, Rejected{Offset: offset, Key: s.Service + "/" + s.ID, Reason: IgnoredUnstorable, Detail: why,
			At: s.ReceivedAt})
		return
	}
	p.slow = append(p.slow, i)
}

// steady reports whether an accepted beat says nothing new.
func steady(r *row, s *Sighting) bool {
	return r.Liveness == Live && s.Status == r.Status && (s.Incarnation == r.Incarnation || s.Incarnation == 0) &&
		s.Interval == r.Interval && s.StaleAfter == r.StaleAfter && sameAttrs(&s.Attrs, &r.Attrs)
}

// seenAt is the clock of a row's newest beat, of this batch or before.
func (p *plan) seenAt(r *row) int64 {
	if r.mark == p.mark && r.newest >= 0 {
		return p.clocks[r.newest]
	}
	return r.clock
}

// hotChunk is the rows of one upsert: 1000 was the best of those measured.
const hotChunk = 1000

const hotColumns = "id,part,clock,incarnation,seq,received_at,skew,in_flight,rps_milli,latency_us,cpu_milli,memory"

// writeSteady moves the hot rows of all steady beats, sorted by key, so that two streams never wait for each other
// crosswise.
func (p *plan) writeSteady(ctx context.Context, tx *sqlx.Tx, d Dialect, b *Batch, part int32) error {
	slices.SortFunc(p.steady, byDenseID)
	return chunks(p.steady, hotChunk, func(rows []*row) error {
		p.sql = append(p.sql[:0], "INSERT INTO hot ("+hotColumns+") VALUES "...)
		for i, r := range rows {
			if i > 0 {
				p.sql = append(p.sql, ',')
			}
			s := b.Records[r.newest].Sighting
			p.sql = appendHot(p.sql, r.DenseID, part, p.clocks[r.newest], s.Incarnation, s.Seq, s)
		}
		p.sql = append(p.sql, steadySuffix(d)...)
		if _, err := tx.ExecContext(ctx, string(p.sql)); err != nil {
			return fmt.Errorf("move %d hot rows: %w", len(rows), err)
		}
		return nil
	})
}

// steadySuffix is the condition of a steady beat: the row moves if the beat is of the same incarnation and newer, or has
// no order of its own. The index knows that already of what came through this partition; an instance that beats into two
// partitions at once is settled here. MySQL evaluates assignments from left to right, so seq, which the condition reads,
// is assigned last.
func steadySuffix(d Dialect) string {
	if d == SQLite {
		return steadySQLite
	}
	return steadyMySQL
}

var steadyMySQL, steadySQLite = func() (string, string) {
	cols := []string{"part", "clock", "received_at", "skew", "in_flight", "rps_milli", "latency_us", "cpu_milli", "memory"}
	const newer = "VALUES(incarnation)=0 OR (VALUES(incarnation)=incarnation AND (VALUES(seq)=0 OR VALUES(seq)>seq))"
	my := MySQL.onConflict("id")
	for _, c := range cols {
		my += c + "=IF(" + newer + ",VALUES(" + c + ")," + c + "),"
	}
	my += "seq=IF(VALUES(incarnation)=incarnation AND VALUES(seq)>seq,VALUES(seq),seq)"

	lite := SQLite.onConflict("id")
	for _, c := range cols {
		lite += c + "=excluded." + c + ","
	}
	lite += "seq=CASE WHEN excluded.incarnation=incarnation THEN MAX(seq,excluded.seq) ELSE seq END" +
		" WHERE excluded.incarnation=0 OR (excluded.incarnation=incarnation AND (excluded.seq=0 OR excluded.seq>seq))"
	return my, lite
}()

// appendHot writes one row of the hot table as SQL text. All of it is numbers, so there is nothing to quote, and no
// argument to box, convert and interpolate again.
func appendHot(sql []byte, id int64, part int32, clock, incarnation, seq int64, s *Sighting) []byte {
	skew := int64(SkewUnknown)
	if s.SentAt != 0 {
		skew = s.ReceivedAt - s.SentAt
	}
	l := &s.Load
	sql = append(sql, '(')
	sql = strconv.AppendInt(sql, id, 10)
	for _, v := range [...]int64{
		int64(part), clock, incarnation, seq, s.ReceivedAt, skew, clampInt(float64(l.InFlight)), clampInt(l.RPS * 1000),
		clampInt(l.LatencyMS * 1000), clampInt(l.CPU * 1000), max(0, l.Memory),
	} {
		sql = append(sql, ',')
		sql = strconv.AppendInt(sql, v, 10)
	}
	return append(sql, ')')
}

// clampInt is a load figure as an INT column holds it.
func clampInt(v float64) int64 {
	if !(v > 0) { // also NaN
		return 0
	}
	return int64(min(math.Round(v), math.MaxInt32))
}
