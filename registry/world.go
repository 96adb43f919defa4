package registry

import (
	"maps"
	"slices"
)

// world is the part of the registry that one transaction works on, loaded under the revision lock, and what it changes of
// it. Its methods are pure: the rules of joining, leaving and claiming, without SQL.
type world struct {
	part  int32
	now   int64 // wall clock for what people see, Unix µs
	actor string
	book  *ledger

	rows   map[name]*row
	byID   map[int64]*row
	addrs  map[string]*claim
	claims map[string]*RouteClaim // by path
	routes map[string]int         // how many a service has, of those that ask for one; above MaxRoutes: and was refused
	clocks map[int32]int64        // of the other partitions

	dirty     map[int64]*row      // instance rows to write
	raised    map[int64]bool      // those of them that routing is built from
	seen      map[int64]*Sighting // hot rows to write, with the beat that they are written for
	services  map[string]bool     // services that won or lost a routable instance
	born      []*row              // instances that this transaction inserts
	addrDirty map[string]*claim
	newClaims []*RouteClaim
	refused   map[refusal]*row // routes that a service can't have, with the instance that wanted it first
	reports   map[int64]report
	events    []Event
	tally     counts
}

// claim is the ownership of an address; a nil owner in addrDirty removes it.
type claim struct {
	addr      string
	instance  int64
	claimedAt int64
}

// refusal is a route that a service asked for and did not get.
type refusal struct{ service, path string }

// report is what an agent says of itself.
type report struct {
	text       []byte
	receivedAt int64
}

// counts is the part of a Result that the rules fill.
type counts struct {
	applied, joined, stale int
	ignored                map[string]int
}

func (c *counts) ignore(reason string, n int) {
	if n == 0 {
		return
	}
	if c.ignored == nil {
		c.ignored = map[string]int{}
	}
	c.ignored[reason] += n
}

func newWorld(part int32, actor string, now int64) *world {
	return &world{
		part: part, now: now, actor: actor,
		rows: map[name]*row{}, byID: map[int64]*row{}, addrs: map[string]*claim{}, claims: map[string]*RouteClaim{},
		routes: map[string]int{}, clocks: map[int32]int64{}, dirty: map[int64]*row{}, raised: map[int64]bool{}, seen: map[int64]*Sighting{},
		services: map[string]bool{}, addrDirty: map[string]*claim{}, refused: map[refusal]*row{}, reports: map[int64]report{},
	}
}

// add takes a row that was loaded, unless it is there already.
func (w *world) add(r *row) {
	if w.byID[r.DenseID] == nil {
		w.byID[r.DenseID] = r
		w.rows[r.name()] = r
	}
}

// touch marks a row to be written without raising the revision.
func (w *world) touch(r *row) {
	r.ChangedAt = w.now
	w.dirty[r.DenseID] = r
}

// raise marks a row to be written with a new revision: routing is built from what changed of it.
func (w *world) raise(r *row) {
	w.touch(r)
	w.raised[r.DenseID] = true
	r.Revision = w.book.next()
}

// become gives an instance another liveness, with the cause for people and the event. Routing is rebuilt when it enters,
// leaves or is doubted.
func (w *world) become(r *row, to Liveness, kind, cause string) {
	was := r.Liveness
	r.Liveness, r.Cause = to, cause
	r.unprovenClock, r.staleClock = 0, 0
	if was.Routable() || to.Routable() {
		w.raise(r)
	} else {
		w.touch(r)
	}
	if was.Routable() != to.Routable() && !IsAgent(r.Service) {
		w.services[r.Service] = true
	}
	w.event(kind, r, cause)
}

func (w *world) event(kind string, r *row, cause string) {
	w.events = append(w.events, Event{
		At: w.now, Kind: kind, Service: r.Service, ID: r.ID, Actor: w.actor, Cause: cause,
	})
}

// clockOf is the clock of a row's partition; clock is that of the partition at hand.
func (w *world) clockOf(r *row, clock int64) int64 {
	if r.part == w.part {
		return clock
	}
	return w.clocks[r.part]
}

// missed reports whether an instance has missed 1.5 of its beats, on its own partition's clock.
func (w *world) missed(r *row, clock int64) bool {
	age := micros(w.clockOf(r, clock) - r.clock)
	return age > r.Interval*3/2 || age > r.StaleAfter
}

// sortedRows are the rows of a set in the order of their keys, in which they are locked.
func sortedRows(set map[int64]*row) []*row {
	return slices.SortedFunc(maps.Values(set), byDenseID)
}
