package registry

import "fmt"

// settle finds out what an accepted beat changed, and says it in one event.
func (w *world) settle(r *row, before *Instance, isNew bool, silent int64) {
	changes := differences(&before.Attrs, &r.Attrs)
	switch {
	case isNew || !before.Liveness.Routable():
		w.join(r, before, isNew)
		w.route(r)
		return
	case before.Liveness == Unproven:
		w.become(r, Live, EventProven, "beats again after "+seconds(micros(silent)))
	case r.Incarnation != before.Incarnation:
		cause := fmt.Sprintf("restarted: incarnation %d → %d", before.Incarnation, r.Incarnation)
		if changes != "" {
			cause += ", " + changes
		}
		w.become(r, Live, EventRestarted, cause)
	case r.Status != before.Status:
		w.become(r, Live, statusEvent(r.Status), statusCause(r.Status, changes))
	case changes != "":
		w.become(r, Live, EventChanged, changes)
	case r.Interval != before.Interval || r.StaleAfter != before.StaleAfter:
		w.touch(r) // judged otherwise from now on, routed to as before
	}
	if r.Attrs.URL != before.Attrs.URL {
		w.route(r)
	}
}

func (w *world) join(r *row, before *Instance, isNew bool) {
	cause := "joined"
	switch {
	case isNew:
	case r.Incarnation != before.Incarnation && before.Incarnation != 0:
		cause = fmt.Sprintf("joined again with incarnation %d, after it was %s", r.Incarnation, before.Liveness)
	default:
		cause = fmt.Sprintf("back, after it was %s", before.Liveness)
	}
	if r.Status == StatusDraining {
		cause += ", draining"
	}
	w.become(r, Live, EventJoined, cause)
	w.tally.joined++
}

func statusEvent(s Status) string {
	if s == StatusDraining {
		return EventDraining
	}
	return EventUp
}

func statusCause(s Status, changes string) string {
	cause := "takes traffic again"
	if s == StatusDraining {
		cause = "draining"
	}
	if changes != "" {
		cause += ", " + changes
	}
	return cause
}

// route claims the path that an instance serves for its service. First come, first served.
func (w *world) route(r *row) {
	path := RoutePath(r.Attrs.URL)
	if path == "" || IsAgent(r.Service) {
		return
	}
	c := w.claims[path]
	switch {
	case c == nil:
		c = &RouteClaim{Path: path, Service: r.Service, ClaimedAt: w.now, Revision: w.book.next()}
		w.claims[path] = c
		w.newClaims = append(w.newClaims, c)
		w.events = append(w.events, Event{At: w.now, Kind: EventRouteClaimed, Service: r.Service, Actor: w.actor,
			Cause: fmt.Sprintf("route %s claimed, first served by %s", path, r.name())})
	case c.Service != r.Service:
		if k := (refusal{r.Service, path}); w.refused[k] == nil {
			w.refused[k] = r
		}
	}
}

// refuse is said once per service and path: when the first of its routable instances asks for it.
func (w *world) refuse(k refusal) {
	w.events = append(w.events, Event{At: w.now, Kind: EventRouteRefused, Service: k.service, Actor: w.actor,
		Cause: fmt.Sprintf("route %s belongs to %s, asked for by %s", k.path, w.claims[k.path].Service, w.refused[k].name())})
}
