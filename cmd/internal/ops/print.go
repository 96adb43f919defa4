package ops

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// printer writes what a command found.
type printer struct {
	out, err io.Writer
	json     bool
}

// value prints v as JSON.
func (p *printer) value(v any) error {
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// line prints v as JSON on one line.
func (p *printer) line(v any) error {
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table prints rows under their heads. Rows and heads have the same number of cells.
func (p *printer) table(heads string, rows [][]string) error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(heads, " ", "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = cell(c)
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	return w.Flush()
}

// fields prints name and value pairs, one a line.
func (p *printer) fields(pairs ...string) error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(w, "%s\t%s\n", pairs[i], cell(pairs[i+1]))
	}
	return w.Flush()
}

// cell is text as a cell: on one line, never empty, and without anything that a terminal would act upon, since some of
// it was sent by whoever can write to the heartbeat topic.
func cell(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
	if strings.TrimSpace(s) == "" {
		return "-"
	}
	return s
}

// span is a number of seconds as people read it: 1.2s, 42s, 12m, 3h20m, 4d.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

func spanOf(seconds *float64) string {
	if seconds == nil {
		return ""
	}
	return span(*seconds)
}

// skew is how far a sender's clock is off, in ms: -35ms is 35 ms ahead of the listener's.
func skew(ms *float64) string {
	switch {
	case ms == nil:
		return ""
	case *ms > -10_000 && *ms < 10_000:
		return fmt.Sprintf("%+.0fms", *ms)
	}
	return fmt.Sprintf("%+.1fs", *ms/1000)
}

func number[T int | int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

func numberOf[T int | int32 | int64](n *T) string {
	if n == nil {
		return ""
	}
	return number(*n)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
