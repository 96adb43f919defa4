package registry

import (
	"cmp"
	"math"
	"slices"
)

// index is what a Stream remembers of its partition: the routable instances whose last beat came through it. It is a
// cache: it may still hold one that has moved to another partition since, which is found out before anyone is judged.
// It is changed only after a transaction is committed, or by what was read.
type index struct {
	names    map[name]*row
	ids      map[int64]*row
	unproven map[int64]*row
	// earliest is a lower bound of the clock at which the next live instance can be overdue, so that most pulses look at
	// no instance at all.
	earliest int64
}

func newIndex() *index {
	return &index{names: map[name]*row{}, ids: map[int64]*row{}, unproven: map[int64]*row{}, earliest: math.MaxInt64}
}

// put takes the row as it stands in the database now; it belongs here only if it is routable and of partition part.
func (x *index) put(r *row, part int32) {
	if old := x.names[r.name()]; old != nil && old.DenseID != r.DenseID {
		x.drop(old) // deleted and born again under a new key
	}
	if r.part != part || !r.Liveness.Routable() {
		x.drop(r)
		return
	}
	x.names[r.name()] = r
	x.ids[r.DenseID] = r
	if r.Liveness == Unproven {
		x.unproven[r.DenseID] = r
		return
	}
	delete(x.unproven, r.DenseID)
	x.earliest = min(x.earliest, due(r))
}

func (x *index) drop(r *row) {
	delete(x.names, r.name())
	delete(x.ids, r.DenseID)
	delete(x.unproven, r.DenseID)
}

// due is the clock after which the instance is stale.
func due(r *row) int64 { return r.clock + r.StaleAfter.Microseconds() }

// overdue finds at most limit live instances that are silent for longer than theirs, oldest key first, and the lower
// bound for the next look. seen tells the clock of the last beat, which the batch at hand may have moved.
func (x *index) overdue(clock int64, limit int, seen func(*row) int64) (found []*row, earliest int64) {
	earliest = math.MaxInt64
	for _, r := range x.ids {
		if r.Liveness != Live {
			continue
		}
		at := seen(r) + r.StaleAfter.Microseconds()
		if at < clock {
			found = append(found, r)
		} else {
			earliest = min(earliest, at)
		}
	}
	slices.SortFunc(found, byDenseID)
	if len(found) > limit {
		found, earliest = found[:limit], clock-1 // the next batch goes on, also at this clock
	}
	return found, earliest
}

func byDenseID(a, b *row) int { return cmp.Compare(a.DenseID, b.DenseID) }
