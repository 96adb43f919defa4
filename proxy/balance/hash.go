package balance

import (
	"hash/crc32"
	"strconv"
)

// keyHash maps a key onto the main servers by their weights. Each rejected candidate is followed by another round over
// the key with the round's number in front. The sums are nginx's.
type keyHash struct {
	ranges ranges
	digits []byte // the round's number, written out; the upstream's mutex guards it
}

// Build implements Builder.
func (*keyHash) Build(main []Server) Method {
	return &keyHash{ranges: newRanges(main), digits: make([]byte, 0, 10)}
}

// Choose implements Method. The memo's A is the sum of the rounds so far, B their number.
func (m *keyHash) Choose(r *Round) Verdict {
	key := r.Ask().Key
	if r.unfit() || len(key) == 0 {
		return Anyone
	}
	memo := r.Memo()
	for {
		memo.A += m.round(memo.B, key)
		memo.B++
		if i := m.ranges.of(memo.A); r.Eligible(i) == Eligible {
			r.Keep(i)
			return Exactly
		}
		if memo.giveUp() {
			return Anyone
		}
	}
}

// round is what round n adds to the sum.
func (m *keyHash) round(n uint32, key []byte) uint32 {
	var crc uint32
	if n > 0 {
		m.digits = strconv.AppendUint(m.digits[:0], uint64(n), 10)
		crc = crc32.ChecksumIEEE(m.digits)
	}
	return crc32.Update(crc, crc32.IEEETable, key) >> 16 & 0x7fff
}
