package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/upstrand/upstrand/registry/wire"
)

// FollowWait is how long one call of Follow waits at the registry, which is the most that it lets a caller wait.
const FollowWait = 30 * time.Second

// Follow yields the events that q chooses as they happen, oldest first, from q.After on; when that is nil, from now on.
// It ends with ctx, or when the consumer stops. An error does not end it: a consumer that goes on after one, having
// waited as long as it sees fit, makes it ask again from where it was; after a *RenumberedError, from the beginning.
func (c *Client) Follow(ctx context.Context, q EventQuery) iter.Seq2[wire.Event, error] {
	q.Cursor = ""
	if q.Wait == 0 {
		q.Wait = FollowWait
	}
	return func(yield func(wire.Event, error) bool) {
		for ctx.Err() == nil {
			list, err := c.next(ctx, q)
			if err != nil {
				if ctx.Err() != nil || !yield(wire.Event{}, err) {
					return
				}
				continue
			}
			if q.After != nil && list.LastSeq < *q.After {
				began, renumbered := int64(0), &RenumberedError{After: *q.After, LastSeq: list.LastSeq}
				q.After = &began
				if !yield(wire.Event{}, renumbered) {
					return
				}
				continue
			}
			if q.After != nil { // else these are old ones, and only the place counts
				for _, e := range list.Events {
					if !yield(e, nil) {
						return
					}
				}
			}
			q.After = &list.LastSeq
		}
	}
}

func (c *Client) next(ctx context.Context, q EventQuery) (wire.EventList, error) {
	if q.After == nil {
		q.Wait, q.Limit = 0, 1
	}
	return c.Events(ctx, q)
}

// RenumberedError says that the registry's newest event has a lower number than one that was seen before: its database is
// a new one, or was restored from an older copy.
type RenumberedError struct{ After, LastSeq int64 }

func (e *RenumberedError) Error() string {
	return fmt.Sprintf("registry: its newest event is %d, after %d was seen: its database is a new one, or an older copy", e.LastSeq, e.After)
}
