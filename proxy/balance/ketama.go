package balance

import (
	"hash/crc32"
	"math/bits"
	"slices"
	"strings"
)

// ketama maps a key onto a ring of points, so that a server that joins or leaves moves few keys.
type ketama struct {
	main []Server
	ring *ring
}

// Build implements Builder. Most changes of servers leave the ring as it is.
func (m *ketama) Build(main []Server) Method {
	if m.ring != nil && slices.EqualFunc(m.main, main, sameOnRing) {
		return m
	}
	return &ketama{main, newRing(main)}
}

func sameOnRing(a, b Server) bool { return a.ringText() == b.ringText() && a.weight() == b.weight() }

// Choose implements Method. The memo's A is the place of the point taken last.
func (m *ketama) Choose(r *Round) Verdict {
	key := r.Ask().Key
	if r.unfit() || len(key) == 0 {
		return Anyone
	}
	memo := r.Memo()
	at := int(memo.A)
	if !memo.Set {
		at, memo.Set = m.ring.find(crc32.ChecksumIEEE(key)), true
	}
	for !m.keep(r, at) {
		if at++; at == len(m.ring.points) {
			at = 0
		}
		if memo.giveUp() {
			return Anyone
		}
	}
	memo.A = uint32(at)
	return Among
}

// keep keeps the eligible servers of a point, and reports whether there are any.
func (m *ketama) keep(r *Round, at int) bool {
	for i := m.ring.owner[at]; i >= 0; i = m.ring.next[i] {
		if r.Eligible(int(i)) == Eligible {
			r.Keep(int(i))
		}
	}
	return len(r.kept) > 0
}

// pointsPerWeight is how many points a server has on the ring for each unit of its weight. A ring has at most ringPoints,
// which take some 500 MB while it is made; of weights that add up to more each server gets its share of them, and at least
// one: such a ring sends keys elsewhere than nginx's, which would take a hundred bytes for every unit of a weight.
const (
	pointsPerWeight = 160
	ringPoints      = 100_000 * pointsPerWeight
)

// pointsOf is how many points each server gets.
func pointsOf(servers []Server) []int {
	out := make([]int, len(servers))
	total := 0
	for i, s := range servers {
		out[i] = pointsPerWeight * s.weight()
		total += out[i]
	}
	if total > ringPoints {
		for i, n := range out {
			out[i] = max(scaled(n, ringPoints, total), 1)
		}
	}
	return out
}

// ring is the circle of a consistent hash: points in ascending order, each of one server text. It is immutable.
//
// The points are those of Perl's Cache::Memcached::Fast, which nginx computes too: a server's point i is the CRC-32 of
// its host, a zero byte, its port, and the four bytes of point i-1.
type ring struct {
	points []uint32
	owner  []int32 // of each point: the first server of the text
	next   []int32 // of each server: the next one of the same text, or -1
	// guide gives for the upper bits of a hash the first point at or after all that begin with them: points are spread
	// evenly, so that a search is over after a step or two.
	guide []int32
	shift int
}

// newRing builds the ring of a list. Of two texts with the same point, the one declared first has it.
func newRing(servers []Server) *ring {
	r := &ring{next: make([]int32, len(servers))}
	points, total := pointsOf(servers), 0
	for _, n := range points {
		total += n
	}
	last := make(map[string]int32, len(servers)) // of each text: the last server so far
	first := make(map[string]int32, len(servers))
	packed := make([]uint64, 0, total) // the point in the upper half, its owner in the lower
	for i, s := range servers {
		text := s.ringText()
		owner, known := first[text]
		if known {
			r.next[last[text]] = int32(i)
		} else {
			owner = int32(i)
			first[text] = owner
		}
		last[text], r.next[i] = int32(i), -1
		packed = appendPoints(packed, text, owner, points[i])
	}
	packed = sortPoints(packed)
	r.points, r.owner = make([]uint32, 0, len(packed)), make([]int32, 0, len(packed))
	for _, p := range packed {
		hash := uint32(p >> 32)
		if n := len(r.points); n > 0 && r.points[n-1] == hash {
			continue
		}
		r.points, r.owner = append(r.points, hash), append(r.owner, int32(uint32(p)))
	}
	r.lead()
	return r
}

// lead makes the guide: one to two points for each of its places.
func (r *ring) lead() {
	r.shift = 32 - max(bits.Len(uint(len(r.points)))-1, 0)
	r.guide = make([]int32, 1<<(32-r.shift))
	at := int32(0)
	for place := range r.guide {
		for int(at) < len(r.points) && uint64(r.points[at]) < uint64(place)<<r.shift {
			at++
		}
		r.guide[place] = at
	}
}

// ringText is what stands for the server on a ring.
func (s Server) ringText() string {
	if s.Text != "" {
		return s.Text
	}
	return s.Addr
}

// appendPoints adds n points of a text.
func appendPoints(to []uint64, text string, owner int32, n int) []uint64 {
	host, port := splitText(text)
	base := crc32.ChecksumIEEE([]byte(host + "\x00" + port))
	var hash uint32
	for range n {
		hash = crcMore(base, hash)
		to = append(to, uint64(hash)<<32|uint64(uint32(owner)))
	}
	return to
}

// crcMore is the CRC-32 of what crc is of, followed by v's four bytes, the lowest first.
func crcMore(crc, v uint32) uint32 {
	crc = ^crc ^ v
	for range 4 {
		crc = crc32.IEEETable[byte(crc)] ^ crc>>8
	}
	return ^crc
}

// splitText parts a server's text into host and port. The port is what follows the last colon when that is digits and
// nothing else; otherwise all of the text is the host.
func splitText(text string) (host, port string) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return text, ""
	}
	for _, c := range []byte(text[at+1:]) {
		if c < '0' || c > '9' {
			return text, ""
		}
	}
	return text[:at], text[at+1:]
}

// sortPoints sorts packed points by their upper half and keeps the order of equal ones: a radix sort, since a thousand
// servers of a ring have hundreds of thousands of points, and each of them that joins or leaves makes a new ring.
func sortPoints(points []uint64) []uint64 {
	const digit = 11 // bits; three of them hold the 32
	other := make([]uint64, len(points))
	for shift := 32; shift < 64; shift += digit {
		var starts [1 << digit]int32
		for _, p := range points {
			starts[p>>shift&(1<<digit-1)]++
		}
		at := int32(0)
		for i, n := range starts {
			starts[i] = at
			at += n
		}
		for _, p := range points {
			d := p >> shift & (1<<digit - 1)
			other[starts[d]] = p
			starts[d]++
		}
		points, other = other, points
	}
	return points
}

// find gives the place of the first point at or after hash, going around.
func (r *ring) find(hash uint32) int {
	at := int(r.guide[hash>>r.shift])
	for at < len(r.points) && r.points[at] < hash {
		at++
	}
	if at == len(r.points) {
		return 0
	}
	return at
}
