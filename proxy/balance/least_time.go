package balance

// leastTime prefers the peers that are expected to answer first: the average time of an answer, times the requests that
// the peer would have, for its weight.
type leastTime struct {
	lastByte bool // the time to the last byte of an answer counts, else that to its head
	inflight bool // so does the age of the requests in flight
}

// What a time is taken for, in milliseconds: differences below the grain are none, and what is above the longest is bad
// enough.
const (
	timeGrain   = 20
	longestTime = 5000
)

// Choose implements Method. The loop looks at the peers itself, and has estimate's and leastConn's text in it, since it
// runs for every one of them.
func (m leastTime) Choose(r *Round) Verdict {
	kept := r.room()
	n, passed, least, of := 0, 0, 1, 0
	for i, p := range r.peers {
		w := p.full
		if p.flags != 0 {
			if r.closer(p) != Eligible {
				passed++
				continue
			}
			w = p.cap(r.now.milli)
		}
		t := p.times.usual(m.lastByte)
		if p.times.unanswered > 0 || r.now.second-p.checked > p.window {
			t = m.adjust(t, p, r.now)
		}
		amount := grains(t) * (1 + int(p.conns))
		more := amount*of - least*w
		if more > 0 {
			continue
		}
		if more < 0 {
			kept[0], n, least, of = int32(i), 1, amount, w
			continue
		}
		kept[n] = int32(i)
		n++
	}
	return r.keep(n, passed)
}

// estimate is how long the peer takes for one request, in whole grains.
func (m leastTime) estimate(p *Peer, now moment) int {
	t := p.times.usual(m.lastByte)
	if p.times.unanswered > 0 || now.second-p.checked > p.window {
		t = m.adjust(t, p, now)
	}
	return grains(t)
}

func (t *times) usual(lastByte bool) int64 {
	if lastByte {
		return t.response
	}
	return t.header
}

func grains(t int64) int {
	if t > longestTime {
		return longestTime
	}
	return int(uint64(t)/timeGrain+1) * timeGrain
}

// adjust looks beyond the average. What is known of a peer that nothing was sent to for longer than its window wears off,
// so that it gets another chance; and what it has not answered yet may take longer than usual.
func (m leastTime) adjust(t int64, p *Peer, now moment) int64 {
	if idle := now.second - p.checked; idle > p.window {
		t >>= uint64(idle / (p.window + 1))
	}
	if m.inflight && p.times.unanswered > 0 {
		t = max(t, p.times.age(now.milli))
	}
	return t
}

// note tells what will be compared. The comparison feeds averages, which this must not.
func (m leastTime) note(r *Round) {
	for i, p := range r.peers {
		if r.Eligible(i) == Eligible {
			before := p.times
			expected := m.estimate(p, r.now) * (1 + int(p.conns))
			p.times = before
			r.Note(i, float64(expected)/float64(p.cap(r.now.milli)))
		}
	}
}

// timing says which times a method wants to know.
type timing uint8

const (
	untimed   timing = iota
	timed            // a request is in flight until the last byte of its answer has come
	timedHead        // until the head has
)

// timingOf is timedHead only where requests in flight count, so that others need no lock when a head comes.
func timingOf(m Method) timing {
	lt, isTimed := m.(leastTime)
	switch {
	case !isTimed:
		return untimed
	case lt.inflight && !lt.lastByte:
		return timedHead
	}
	return timed
}
