package balance

// ipHash maps a client's network onto the main servers by their weights: the first three bytes of an IPv4 address, all
// of an IPv6 one. The numbers are nginx's.
type ipHash struct {
	ranges ranges
}

// Build implements Builder.
func (*ipHash) Build(main []Server) Method { return &ipHash{newRanges(main)} }

const (
	ipHashStart = 89
	ipHashRound = 113
	ipHashMod   = 6271
)

// Choose implements Method. The memo's A is the hash of the candidate taken last.
func (m *ipHash) Choose(r *Round) Verdict {
	if r.unfit() {
		return Anyone
	}
	var buf [16]byte
	network := clientNetwork(r.Ask(), &buf)
	memo := r.Memo()
	h := memo.A
	if !memo.Set {
		h, memo.Set = ipHashStart, true
	}
	for {
		for _, b := range network {
			h = (h*ipHashRound + uint32(b)) % ipHashMod
		}
		if i := m.ranges.at(uint64(h) % m.ranges.total); r.Eligible(i) == Eligible {
			memo.A = h
			r.Keep(i)
			return Exactly
		}
		if memo.giveUp() {
			return Anyone
		}
	}
}

// clientNetwork gives the bytes of the client's address that count. A client without an address, such as one on a Unix
// socket, counts as 0.0.0.0; an IPv4 client that came over an IPv6 socket as the IPv4 one that it is.
func clientNetwork(ask *Ask, buf *[16]byte) []byte {
	client := ask.Client.Unmap()
	switch {
	case client.Is6():
		*buf = client.As16()
		return buf[:]
	case client.Is4():
		v4 := client.As4()
		copy(buf[:], v4[:3])
	default:
		clear(buf[:3])
	}
	return buf[:3]
}

// ranges lays the weights of a list end to end, as declared: who is down or failing keeps its range.
type ranges struct {
	ends  []uint64 // of each server
	total uint64
}

func newRanges(servers []Server) ranges {
	r := ranges{ends: make([]uint64, len(servers))}
	for i, s := range servers {
		r.total += uint64(s.weight())
		r.ends[i] = r.total
	}
	return r
}

// at gives the server whose range holds x, which is below the total.
func (r *ranges) at(x uint64) int {
	low, high := 0, len(r.ends)-1
	for low < high {
		if middle := (low + high) / 2; x < r.ends[middle] {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
