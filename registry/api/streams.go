package api

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

func (a *api) listStreams(ctx context.Context, _ *struct{}) (*output[wire.StreamList], error) {
	ctx, cancel := a.read(ctx)
	defer cancel()
	states, err := a.store.Streams(ctx)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	list := wire.StreamList{Streams: make([]wire.Stream, len(states))}
	for i, s := range states {
		out := wire.Stream{
			Partition: s.Part, Clock: s.Clock.Seconds(), LogEnd: s.LogEnd, Owner: s.Owner, UpdatedAt: wire.Time(s.UpdatedAt), UpdatedAge: a.since(s.UpdatedAt),
		}
		if s.NextOffset >= 0 {
			lag := max(0, s.LogEnd-s.NextOffset)
			out.NextOffset, out.Lag = &s.NextOffset, &lag
		}
		list.Streams[i] = out
	}
	return &output[wire.StreamList]{list}, nil
}

type rejectedInput struct {
	Reasons   []string `query:"reason" maxItems:"64" doc:"Only those rejected for one of these reasons."`
	Partition int32    `query:"partition" minimum:"0" maximum:"2147483647" doc:"Only those of this partition."`
	PageInput
	Given
}

func (a *api) listRejected(ctx context.Context, in *rejectedInput) (*output[wire.RejectedList], error) {
	f := registry.RejectedFilter{Reasons: in.Reasons, Limit: in.Limit + 1}
	if in.has("partition") {
		f.Part = &in.Partition
	}
	if in.Cursor != "" {
		key, err := decodeNumbers(cursorRejected, in.Cursor)
		if err != nil || int64(int32(key[1])) != key[1] {
			return nil, badCursor(in.Cursor)
		}
		f.After = &registry.RejectedKey{At: key[0], Part: int32(key[1]), Offset: key[2]}
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	views, err := a.store.ListRejected(ctx, f)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	counts, err := a.store.RejectedCounts(ctx, f)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	views, more := cut(views, in.Limit)
	list := wire.RejectedList{Rejected: make([]wire.Rejected, len(views)), Counts: make([]wire.ReasonCount, len(counts))}
	for i, v := range views {
		list.Rejected[i] = wire.Rejected{
			Partition: v.Part, Offset: v.Offset, Key: v.Key, Reason: v.Reason, Detail: v.Detail, Value: printable(v.Value), At: wire.Time(v.At),
		}
	}
	for i, c := range counts {
		list.Counts[i] = wire.ReasonCount(c)
	}
	if more {
		last := views[len(views)-1]
		list.NextCursor = encodeNumbers(cursorRejected, last.At, int64(last.Part), last.Offset)
	}
	return &output[wire.RejectedList]{list}, nil
}

// printable is value as text that a terminal and JSON can take, and that says which bytes there were.
func printable(value []byte) string {
	var s strings.Builder
	for len(value) > 0 {
		r, n := utf8.DecodeRune(value)
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&s, `\x%02x`, value[0])
		case r == '\\':
			s.WriteString(`\\`)
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			s.WriteRune(r)
		default:
			for _, b := range value[:n] {
				fmt.Fprintf(&s, `\x%02x`, b)
			}
		}
		value = value[n:]
	}
	return s.String()
}
