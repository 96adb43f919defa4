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
		h = ipHashOver(h, network)
		if i := m.ranges.of(h); r.Eligible(i) == Eligible {
			memo.A = h
			r.Keep(i)
			return Exactly
		}
		if memo.giveUp() {
			return Anyone
		}
	}
}

// ipHashOver takes a network into the hash. The remainder is nginx's after each byte; taken after several it is the same,
// and 16 bytes of a step would be too many for 64 bits.
func ipHashOver(h uint32, network []byte) uint32 {
	wide := uint64(h)
	for i, b := range network {
		if i%4 == 3 {
			wide %= ipHashMod
		}
		wide = wide*ipHashRound + uint64(b)
	}
	return uint32(wide % ipHashMod)
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
