package registry

import (
	"fmt"
	"strings"
)

// settle finds out what an accepted beat changed, and says it in one event.
func (w *world) settle(r *row, before *Instance, isNew bool, silent int64) {
	changes := differences(&before.Attrs, &r.Attrs)
	switch {
	case isNew || !before.Liveness.Routable():
		w.join(r, before, isNew)
		w.route(r)
		return
	case before.Liveness == Unproven || r.Incarnation != before.Incarnation || r.Status != before.Status || changes != "":
		kind, cause := news(r, before, silent, changes)
		w.become(r, Live, kind, cause)
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

// news is what a beat says of an instance that was routable before. Much may have happened at once: the event is of the
// kind that comes first here, and its cause tells all of it.
func news(r *row, before *Instance, silent int64, changes string) (kind, cause string) {
	var said []string
	tell := func(k, text string) {
		if kind == "" {
			kind = k
		}
		said = append(said, text)
	}
	if r.Incarnation != before.Incarnation {
		tell(EventRestarted, fmt.Sprintf("restarted: incarnation %d → %d", before.Incarnation, r.Incarnation))
	}
	if r.Status != before.Status {
		if r.Status == StatusDraining {
			tell(EventDraining, "draining")
		} else {
			tell(EventUp, "takes traffic again")
		}
	}
	if before.Liveness == Unproven {
		tell(EventProven, "beats again after "+seconds(micros(silent)))
	}
	if changes != "" {
		tell(EventChanged, changes)
	}
	return kind, strings.Join(said, ", ")
}

// MaxRoutes is how many routes a service may claim. A claim is kept until the service is gone, so without a limit one
// instance that names another url in each beat would fill the topology.
const MaxRoutes = 64

// route claims the path that an instance serves for its service. First come, first served.
func (w *world) route(r *row) {
	path := RoutePath(r.Attrs.URL)
	if path == "" || IsAgent(r.Service) {
		return
	}
	c := w.claims[path]
	switch {
	case c == nil && w.routes[r.Service] < MaxRoutes:
		w.routes[r.Service]++
		c = &RouteClaim{Path: path, Service: r.Service, ClaimedAt: w.now, Revision: w.book.next()}
		w.claims[path] = c
		w.newClaims = append(w.newClaims, c)
		w.events = append(w.events, Event{At: w.now, Kind: EventRouteClaimed, Service: r.Service, Actor: w.actor,
			Cause: fmt.Sprintf("route %s claimed, first served by %s", path, r.name())})
	case c == nil && w.routes[r.Service] > MaxRoutes: // said in this transaction already; urls may come by the thousand
	case c == nil || c.Service != r.Service:
		if c == nil {
			w.routes[r.Service]++
		}
		if k := (refusal{r.Service, path}); w.refused[k] == nil {
			w.refused[k] = r
		}
	}
}

// refuse is said once per service and path: when the first of its routable instances asks for it.
func (w *world) refuse(k refusal) {
	why := fmt.Sprintf("is one too many: a service may have %d and keeps each until it is gone", MaxRoutes)
	if c := w.claims[k.path]; c != nil {
		why = "belongs to " + c.Service
	}
	w.events = append(w.events, Event{At: w.now, Kind: EventRouteRefused, Service: k.service, Actor: w.actor,
		Cause: fmt.Sprintf("route %s %s, asked for by %s", k.path, why, w.refused[k].name())})
}
