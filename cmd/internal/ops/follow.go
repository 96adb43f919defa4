package ops

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

// retryPause is how long a follower waits after a failure.
const retryPause = 2 * time.Second

// follower prints events as they come, in columns: wide enough for what was there at the beginning and for most of what
// may come, and wider from the first cell on that does not fit.
type follower struct {
	out    *printer
	widths []int
	seen   int64 // number of the newest event that was looked at
}

// begin prints the head and the events that there are.
func (f *follower) begin(events []wire.Event) error {
	if f.out.json {
		return f.print(events...)
	}
	heads := strings.Fields(eventHeads)
	f.widths = []int{27, 6, 14, 24, 30, 0} // the last column needs no end
	f.widen(heads)
	for _, e := range events {
		f.widen(eventCells(e))
	}
	if err := f.row(heads); err != nil {
		return err
	}
	return f.print(events...)
}

func (f *follower) print(events ...wire.Event) error {
	for _, e := range events {
		f.seen = max(f.seen, e.Seq)
		if f.out.json {
			if err := f.out.line(e); err != nil {
				return err
			}
			continue
		}
		cells := eventCells(e)
		f.widen(cells)
		if err := f.row(cells); err != nil {
			return err
		}
	}
	return nil
}

// widest is where a column stops to grow: one long cause must not push all that follows off the screen.
const widest = 60

func (f *follower) widen(cells []string) {
	for i, c := range cells[:len(cells)-1] {
		f.widths[i] = max(f.widths[i], min(utf8.RuneCountInString(cell(c)), widest))
	}
}

func (f *follower) row(cells []string) error {
	var line strings.Builder
	for i, c := range cells {
		fmt.Fprintf(&line, "%-*s  ", f.widths[i], cell(c))
	}
	_, err := fmt.Fprintln(f.out.out, strings.TrimRight(line.String(), " "))
	return err
}

// follow prints what comes until ctx ends. It says when the registry can't be reached, and when it is back.
func (f *follower) follow(ctx context.Context, cl *client.Client, q client.EventQuery) error {
	for e, err := range cl.Follow(ctx, q) {
		var renumbered *client.RenumberedError
		switch {
		case err == nil:
			err = f.print(e)
		case errors.As(err, &renumbered):
			fmt.Fprintf(f.out.err, "%v; going on from its first event\n", err)
			f.seen, err = 0, nil
		default:
			err = f.outage(ctx, cl, q, err)
		}
		if err != nil {
			return err
		}
	}
	return nil // interrupted, which is how following ends
}

// outage waits until the registry answers again. An answer that waiting does not mend is returned.
func (f *follower) outage(ctx context.Context, cl *client.Client, q client.EventQuery, err error) error {
	q.After, q.Wait, q.Limit = &f.seen, 0, 1
	for said := ""; err != nil; _, err = cl.Events(ctx, q) {
		var answer *client.Error
		if errors.As(err, &answer) && answer.Status < 500 {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if err.Error() != said {
			said = err.Error()
			fmt.Fprintf(f.out.err, "%s; trying again\n", said)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPause):
		}
	}
	fmt.Fprintln(f.out.err, "the registry is back")
	return nil
}
