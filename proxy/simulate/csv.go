package simulate

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"
)

// table writes one row for each candidate of each pick.
type table struct {
	w   *csv.Writer
	row []string
}

var columns = []string{"pick", "request", "seconds", "upstream", "part", "try", "server", "addr", "won", "answer", "reason",
	"weight", "current_before", "current_after", "effective_before", "effective_after", "unit", "open", "fails"}

// newTable begins with the names of the columns, which stand also over no row at all.
func newTable(w io.Writer) *table {
	t := &table{w: csv.NewWriter(w)}
	_ = t.w.Write(columns) // an error stays with the writer
	return t
}

// add writes the rows of the i-th pick of a request.
func (t *table) add(r *run, v *visit, i int) {
	e := v.picks[i].explained
	for j := range e.Candidates {
		c := &e.Candidates[j]
		answer := ""
		if c.Won {
			answer = v.answer(i)
		}
		t.row = append(t.row[:0], strconv.Itoa(r.picks), strconv.Itoa(v.number), secondsText(e.Time.UnixNano()-r.began), e.Upstream, e.Part,
			strconv.Itoa(e.Try), c.ID, c.Addr, strconv.FormatBool(c.Won), answer, c.Reason.String(), strconv.Itoa(c.Weight),
			strconv.Itoa(c.CurrentBefore), strconv.Itoa(c.CurrentAfter), strconv.Itoa(c.EffectiveBefore),
			strconv.Itoa(c.EffectiveAfter), strconv.Itoa(e.Unit), strconv.Itoa(c.Conns), strconv.Itoa(c.Fails))
		_ = t.w.Write(t.row)
	}
}

// secondsText is a time as a plain number.
func secondsText(ns int64) string {
	return strconv.FormatFloat(time.Duration(ns).Seconds(), 'f', 3, 64)
}

func (t *table) flush() error {
	t.w.Flush()
	return t.w.Error()
}
