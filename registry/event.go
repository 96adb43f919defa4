package registry

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Kinds of events about instances, services, routes and streams.
const (
	EventJoined        = "joined"         // a new instance, or one that is back
	EventRestarted     = "restarted"      // a new incarnation took over from a routable one
	EventChanged       = "changed"        // address, weight or another attribute
	EventDraining      = "draining"       // asked to get nothing new
	EventUp            = "up"             // takes traffic again after draining
	EventLeft          = "left"           // said goodbye
	EventStale         = "stale"          // fell silent
	EventUnproven      = "unproven"       // silent together with too many others
	EventProven        = "proven"         // an unproven one beats again
	EventSuperseded    = "superseded"     // lost its address to another instance
	EventRouteClaimed  = "route_claimed"  // a service owns a URL path now
	EventRouteRefused  = "route_refused"  // another service owns it, or its path can't be published
	EventRouteReleased = "route_released" // its service is gone
	EventServiceGone   = "service_gone"   // had no instance for too long, or was deleted
	EventForgotten     = "forgotten"      // the row of a dead instance was deleted
	EventStream        = "stream"         // a partition's position was set by hand

	EventTopologyDeclared = "topology_declared" // an operator changed a file of the declared topology
)

// Kinds of events that the confgen leader adds.
const (
	EventDeclaredWins    = "declared_wins"       // a derived upstream, upstrand or route gave way to a declared one
	EventInstanceRefused = "instance_refused"    // an instance that can't be published as it is
	EventServiceRefused  = "service_refused"     // a service that can't be published as it is
	EventDeclarationBad  = "declaration_refused" // the declared topology can't be read: what was read before stays
	EventPathTaken       = "route_path_taken"    // two claims that come to the same path: the older one has it
	EventRestored        = "database_restored"   // the topic or an agent is ahead of the database
	EventResumed         = "publishing_resumed"  // after a restored database
)

// EventKinds lists all of them.
func EventKinds() []string {
	return []string{
		EventJoined, EventRestarted, EventChanged, EventDraining, EventUp, EventLeft,
		EventStale, EventUnproven, EventProven, EventSuperseded, EventRouteClaimed, EventRouteRefused,
		EventRouteReleased, EventServiceGone, EventForgotten, EventStream, EventTopologyDeclared, EventDeclaredWins,
		EventDeclarationBad, EventInstanceRefused, EventServiceRefused, EventPathTaken, EventRestored, EventResumed,
	}
}

var eventCols = []string{"happened_at", "kind", "service", "iid", "actor", "cause", "detail", "revision"}

// insertEvents writes events under the revision lock, so that they become visible in the order of their numbers.
func insertEvents(ctx context.Context, tx *sqlx.Tx, events []Event) error {
	return chunks(events, writeChunk, func(part []Event) error {
		args := make([]any, 0, len(part)*len(eventCols))
		for i := range part {
			e := &part[i]
			args = append(args, e.At, cutASCII(e.Kind, 32), cutASCII(e.Service, 64), cutASCII(e.ID, 64),
				cutText(e.Actor, 128), cutText(e.Cause, 255), string(e.Detail), e.Revision)
		}
		if _, err := tx.ExecContext(ctx, insert("event", eventCols, len(part)), args...); err != nil {
			return fmt.Errorf("write %d events: %w", len(part), err)
		}
		return nil
	})
}

// AddEvent writes an event of another role, such as a declared name that wins over a derived one. Seq and Revision are
// filled here, and At when it is 0. Detail is JSON or nil, at most 64 KiB.
func (s *Store) AddEvent(ctx context.Context, e Event) error {
	if len(e.Detail) > maxText {
		return fmt.Errorf("registry: add event %s: detail of %d bytes, at most %d", e.Kind, len(e.Detail), maxText)
	}
	if e.At == 0 {
		e.At = s.now()
	}
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		l, err := s.lockLedger(ctx, tx)
		if err != nil {
			return err
		}
		e.Revision = l.n
		return insertEvents(ctx, tx, []Event{e})
	})
	if err != nil {
		return fmt.Errorf("registry: add event %s: %w", e.Kind, err)
	}
	return nil
}
