package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

type eventsInput struct {
	Service string   `query:"service" pattern:"^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$" patternDescription:"a service's name: up to 64 of a-z, 0-9, dot, _ and -, with a letter or digit at both ends" doc:"Only those about this service."`
	ID      string   `query:"id" pattern:"^[A-Za-z0-9._:-]{1,64}$" patternDescription:"an instance's id: 1 to 64 of letters, digits, dot, _, : and -" doc:"Only those about instances of this id."`
	Kinds   []string `query:"kind" maxItems:"32" doc:"Only those of these kinds."`
	Since   string   `query:"since" format:"time-or-ago" doc:"Only those from this time on: RFC 3339 and not in the future, or a duration such as 15m for that long ago."`
	After   int64    `query:"after" minimum:"0" doc:"Only those with a higher seq, oldest first: for following."`
	Wait    float64  `query:"wait_s" minimum:"0" maximum:"30" doc:"How long to wait for an event if there is none yet; needs after."`
	PageInput
	Given
}

func (in *eventsInput) filter(now time.Time) (registry.EventFilter, error) {
	f := registry.EventFilter{Service: in.Service, ID: in.ID, Kinds: in.Kinds, Limit: in.Limit + 1}
	var errs []wire.FieldError
	if in.Since != "" {
		since, err := parseSince(in.Since, now)
		if err != nil {
			errs = append(errs, wire.FieldError{Location: "query.since", Message: err.Error(), Value: shown(in.Since), Allowed: allowedSince})
		}
		f.Since = since.UnixMicro()
	}
	if in.has("after") {
		f.After, f.Limit = &in.After, in.Limit
	} else if in.Wait > 0 {
		errs = append(errs, wire.FieldError{Location: "query.wait_s", Message: "is given without after", Value: fmt.Sprint(in.Wait), Allowed: "wait_s beside after"})
	}
	switch {
	case in.Cursor != "" && f.After != nil:
		errs = append(errs, wire.FieldError{Location: "query.cursor", Message: "is given beside after", Value: shown(in.Cursor), Allowed: "one of the two"})
	case in.Cursor != "":
		key, err := decodeNumbers(cursorEvents, in.Cursor)
		if err != nil {
			return f, badCursor(in.Cursor)
		}
		f.Before = key[0]
	}
	if len(errs) > 0 {
		return f, badRequest(errs)
	}
	return f, nil
}

func (a *api) listEvents(ctx context.Context, in *eventsInput) (*output[wire.EventList], error) {
	f, err := in.filter(a.cfg.Now())
	if err != nil {
		return nil, err
	}
	list, err := a.events(ctx, f, in.Limit)
	if err != nil || f.After == nil || in.Wait <= 0 || len(list.Events) > 0 || list.LastSeq < *f.After {
		return &output[wire.EventList]{list}, err
	}
	select {
	case a.waiting <- struct{}{}:
		defer func() { <-a.waiting }()
	default:
		return nil, newProblem(http.StatusServiceUnavailable, fmt.Sprintf("%d requests wait for events already", a.cfg.MaxWaiting)).retryAfter(5)
	}
	list, err = a.await(ctx, f, list, time.Duration(in.Wait*float64(time.Second)))
	return &output[wire.EventList]{list}, err
}

// events reads one page. The newest number is read first and bounds the page, so an event that comes in between is
// left to the next call instead of being passed over.
func (a *api) events(ctx context.Context, f registry.EventFilter, limit int) (wire.EventList, error) {
	ctx, cancel := a.read(ctx)
	defer cancel()
	list := wire.EventList{Events: []wire.Event{}}
	last, err := a.store.LastEventSeq(ctx)
	if err != nil {
		return list, a.unreadable(ctx, err)
	}
	list.LastSeq = last
	if f.Before == 0 || f.Before > last {
		f.Before = last + 1
	}
	events, err := a.store.ListEvents(ctx, f)
	if err != nil {
		return list, a.unreadable(ctx, err)
	}
	events, more := cut(events, limit)
	for _, e := range events {
		list.Events = append(list.Events, event(e))
	}
	switch {
	case f.After != nil && len(events) == limit:
		list.LastSeq = events[limit-1].Seq
	case more:
		list.NextCursor = encodeNumbers(cursorEvents, events[limit-1].Seq)
	}
	return list, nil
}

// await looks again until there is an event or the time is over. Between looks it costs one read of the newest number.
func (a *api) await(ctx context.Context, f registry.EventFilter, list wire.EventList, wait time.Duration) (wire.EventList, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	look := time.NewTicker(a.cfg.EventPoll)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return list, nil // nobody is there to read it
		case <-a.cfg.Closing:
			return list, nil
		case <-over.C:
			return list, nil
		case <-look.C:
		}
		last, err := a.lastSeq(ctx)
		if err != nil {
			return list, err
		}
		if last == list.LastSeq {
			continue
		}
		after := list.LastSeq
		f.After = &after
		if list, err = a.events(ctx, f, f.Limit); err != nil || len(list.Events) > 0 || list.LastSeq < after {
			return list, err
		}
	}
}

func (a *api) lastSeq(ctx context.Context) (int64, error) {
	ctx, cancel := a.read(ctx)
	defer cancel()
	last, err := a.store.LastEventSeq(ctx)
	if err != nil {
		return 0, a.unreadable(ctx, err)
	}
	return last, nil
}

func event(e registry.Event) wire.Event {
	out := wire.Event{
		Seq: e.Seq, At: wire.Time(e.At), Kind: e.Kind, Service: e.Service, ID: e.ID, Actor: e.Actor, Cause: e.Cause, Revision: e.Revision,
	}
	if len(e.Detail) > 0 {
		out.Detail = rawJSON(e.Detail)
	}
	return out
}
