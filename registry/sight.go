package registry

import "fmt"

// Reasons why a sighting moves nothing.
const (
	IgnoredReplayed   = "replayed"          // not newer than what the same incarnation said before
	IgnoredLower      = "lower_incarnation" // of an older incarnation than the one that lives
	IgnoredLeft       = "left"              // its incarnation said goodbye, which is final
	IgnoredAddress    = "address_taken"     // another instance owns its address; only its age is noted
	IgnoredUnstorable = "unstorable"        // does not fit the registry's columns
)

// refusedBy orders sightings of one instance: it says why s does not count after what is known, empty when it does. Only
// incarnations of the same instance are compared, and a lower one counts once the holder lives no more, since a host's
// clock may step back over a restart. A sender that gives no incarnation is taken in the order of the log.
// seq is the highest one known of the holder's incarnation.
func refusedBy(r *row, seq int64, s *Sighting) string {
	switch {
	case s.Incarnation == 0:
		if s.Status == StatusLeaving && r.Liveness == Left {
			return IgnoredLeft
		}
		return ""
	case r.Incarnation == 0 || s.Incarnation > r.Incarnation:
		return ""
	case s.Incarnation < r.Incarnation:
		if r.Liveness.Routable() || s.Status == StatusLeaving {
			return IgnoredLower
		}
		return ""
	case s.Seq != 0 && s.Seq <= seq:
		return IgnoredReplayed
	case r.Liveness == Left:
		return IgnoredLeft
	}
	return ""
}

func refused(r *row, s *Sighting) string {
	if r == nil {
		return ""
	}
	return refusedBy(r, r.seq, s)
}

// sight applies one sighting at its place in the log, where the partition's clock stands at clock.
func (w *world) sight(s *Sighting, clock int64) {
	r := w.rows[name{s.Service, s.ID}]
	if reason := refused(r, s); reason != "" {
		w.tally.ignore(reason, 1)
		return
	}
	if s.Status == StatusLeaving {
		w.goodbye(r, s, clock)
	} else {
		w.beat(r, s, clock)
	}
}

// goodbye ends an incarnation. It carries no attributes and claims nothing.
func (w *world) goodbye(r *row, s *Sighting, clock int64) {
	if r == nil {
		if s.Incarnation == 0 {
			w.tally.ignore(IgnoredLeft, 1) // nobody to leave, and nothing that it would be final for
			return
		}
		r = w.create(s) // so that a beat of it that comes late does not bring it back
		r.Attrs = Attrs{Weight: 1}
	}
	r.Status = StatusLeaving
	w.mark(r, s, clock, s.Incarnation)
	cause := "left"
	if r.Liveness == Stale || r.Liveness == Superseded {
		cause = fmt.Sprintf("left, after it was %s", r.Liveness)
	}
	w.become(r, Left, EventLeft, cause)
	w.tally.applied++
}

// beat is any sighting that is no goodbye.
func (w *world) beat(r *row, s *Sighting, clock int64) {
	isNew := r == nil
	if isNew {
		r = w.create(s)
	}
	before := r.Instance
	// The first beat of an incarnation claims. Without an incarnation only the first after a goodbye is known to be that.
	first := isNew || s.Incarnation != 0 && s.Incarnation != r.Incarnation || r.Liveness == Left
	incarnation := s.Incarnation
	if incarnation == 0 && r.Liveness.Routable() {
		incarnation = r.Incarnation // the holder goes on
	}
	silent := w.clockOf(r, clock) - r.clock
	w.mark(r, s, clock, incarnation)
	r.Status, r.Attrs, r.Interval, r.StaleAfter = s.Status, s.Attrs, s.Interval, s.StaleAfter
	if s.Report != nil && IsAgent(s.Service) {
		w.reports[r.DenseID] = report{text: s.Report, receivedAt: s.ReceivedAt}
	}
	if owner := w.own(r, &before, isNew, first, clock); owner != nil {
		w.deny(r, &before, owner)
		return
	}
	w.tally.applied++
	w.settle(r, &before, isNew, silent)
}

// create is a new instance with the next dense key.
func (w *world) create(s *Sighting) *row {
	r := &row{part: w.part}
	r.DenseID, r.Service, r.ID, r.CreatedAt = w.book.nextID(), s.Service, s.ID, w.now
	r.Interval, r.StaleAfter = s.Interval, s.StaleAfter
	w.add(r)
	w.born = append(w.born, r)
	return r
}

// mark notes place and order of the beat in the hot part.
func (w *world) mark(r *row, s *Sighting, clock, incarnation int64) {
	switch {
	case s.Incarnation != 0 && s.Incarnation == r.Incarnation:
		r.seq = max(r.seq, s.Seq)
	case incarnation != r.Incarnation:
		r.seq = s.Seq
	}
	r.Incarnation, r.part, r.clock = incarnation, w.part, clock
	w.seen[r.DenseID] = s
}

// own makes r the owner of its address, or returns who owns it instead. A claim, made by an incarnation's first beat or a
// changed address, always wins over an older one; others only get what is free: nobody's, or of an owner that is not
// routable any more or has missed 1.5 of its beats.
func (w *world) own(r *row, before *Instance, isNew, first bool, clock int64) *row {
	if IsAgent(r.Service) {
		return nil
	}
	addr, old := address(&r.Attrs), address(&before.Attrs)
	moved := !isNew && addr != old
	if c := w.addrs[old]; moved && c != nil && c.instance == r.DenseID {
		delete(w.addrs, old)
		w.addrDirty[old] = nil
	}
	held := w.addrs[addr]
	if held != nil && held.instance == r.DenseID {
		return nil
	}
	if held != nil {
		owner := w.byID[held.instance]
		if owner != nil && owner.Liveness.Routable() {
			if !first && !moved && !w.missed(owner, clock) {
				return owner
			}
			w.become(owner, Superseded, EventSuperseded, fmt.Sprintf("address %s claimed by %s", addr, r.name()))
		}
	}
	c := &claim{addr: addr, instance: r.DenseID, claimedAt: w.now}
	w.addrs[addr], w.addrDirty[addr] = c, c
	return nil
}

// deny keeps r out of routing because owner has its address: said once, then only its age is noted.
func (w *world) deny(r *row, before *Instance, owner *row) {
	w.tally.ignore(IgnoredAddress, 1)
	if before.Liveness != Superseded {
		w.become(r, Superseded, EventSuperseded, fmt.Sprintf("address %s belongs to %s", address(&r.Attrs), owner.name()))
		return
	}
	if before.Status != r.Status || !sameAttrs(&before.Attrs, &r.Attrs) || before.StaleAfter != r.StaleAfter ||
		before.Interval != r.Interval || before.Incarnation != r.Incarnation {
		w.touch(r)
	}
}
