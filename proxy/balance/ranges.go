package balance

import "math/bits"

// ranges lays the weights of a list end to end, as declared: who is down or failing keeps its range.
type ranges struct {
	ends  []uint64 // of each server
	total uint64
	// guide says of equally wide parts of the whole in whose range each begins, so that a search is over after a step or
	// two, whatever the number of servers.
	guide []int32
	shift int // log2 of a part's width
}

func newRanges(servers []Server) ranges {
	r := ranges{ends: make([]uint64, len(servers))}
	for i, s := range servers {
		r.total += uint64(s.weight())
		r.ends[i] = r.total
	}
	if r.total > 0 {
		r.shift = max(bits.Len64(r.total-1)-bits.Len(uint(len(servers)))-1, 0) // two to four parts for each server
		r.guide = make([]int32, (r.total-1)>>r.shift+1)
	}
	i := int32(0)
	for part := range r.guide {
		for r.ends[i] <= uint64(part)<<r.shift {
			i++
		}
		r.guide[part] = i
	}
	return r
}

// at gives the server whose range holds x, which is below the total.
func (r *ranges) at(x uint64) int {
	i := int(r.guide[x>>r.shift])
	for x >= r.ends[i] {
		i++
	}
	return i
}

// of gives the server that a hash comes to.
func (r *ranges) of(hash uint32) int {
	if r.total <= 1<<32-1 { // nearly always, and dividing 32 bits is faster
		return r.at(uint64(hash % uint32(r.total)))
	}
	return r.at(uint64(hash) % r.total)
}
