package balance

import "time"

// Where a server of an upstream sets slow_start, all weights of the upstream count in hundredths: the order stays the
// same, since every sum and comparison is multiplied alike, and a weight of one can grow in a hundred steps. A ramp caps
// what a peer's turn adds to its rotation, from one hundredth up to its whole weight. It is the peer's own: who joins or
// leaves meanwhile changes nothing for it.
//
// A ramp begins when a process joins an upstream that has been serving, when a peer that was declared down is no longer,
// and when the window of a peer that had failed too often ends. The peers that an upstream begins with have none: there
// is nobody who could carry their load meanwhile.
const slowUnit = 100

// unitOf is what a weight of one counts among these servers.
func unitOf(servers []Server) int {
	for i := range servers {
		if servers[i].SlowStart >= time.Millisecond {
			return slowUnit
		}
	}
	return 1
}

// ramp lets the peer's share grow from now on.
func (p *Peer) ramp(milli int64) {
	if p.slowStart > 0 {
		p.rampFrom = milli
		p.flags |= isRamping
	}
}

// rampAfter lets it grow from the end of the window of a failure at second now.
func (p *Peer) rampAfter(now int64) { p.ramp((now + p.window + 1) * 1000) }

// rampSooner lets a ramp that waits for the end of a window begin with the end that new parameters give it.
func (p *Peer) rampSooner(milli int64) {
	if p.flags&isRamping == 0 || p.rampFrom <= milli {
		return
	}
	p.rampFrom = milli
	if p.flags&isFailing != 0 {
		p.rampFrom = max(milli, (p.checked+p.window+1)*1000)
	}
}

// cap is the most that a turn may add at this moment: the whole weight outside of a ramp.
func (p *Peer) cap(milli int64) int {
	if p.flags&isRamping == 0 {
		return p.full
	}
	passed := milli - p.rampFrom
	if passed >= p.slowStart {
		return p.full
	}
	return max(scaled(p.full, int(max(passed, 0)), int(p.slowStart)), 1)
}

// rampLeft is how many milliseconds are left until the whole weight.
func (p *Peer) rampLeft(milli int64) int64 {
	if p.flags&isRamping == 0 {
		return 0
	}
	return max(p.rampFrom+p.slowStart-milli, 0)
}

// ramped is the effective weight of a peer that may be given at this moment. It ends a ramp that is through, and begins
// one at once whose window ended early, since the peer was the only one meanwhile.
func (p *Peer) ramped(milli int64) int {
	if p.flags&isRamping != 0 {
		p.rampFrom = min(p.rampFrom, milli)
		if milli-p.rampFrom >= p.slowStart {
			p.flags &^= isRamping
		}
	}
	return min(p.effective, p.cap(milli))
}
