package upstrand

import "time"

// Cause is why a walk went on to another stop.
type Cause uint8

// The causes.
const (
	OnError   Cause = iota // nobody answered: refused, closed, no peer
	OnTimeout              // no answer in time
	On1xx
	On2xx
	On3xx
	On4xx
	On5xx
	causes
)

var causeNames = [...]string{"error", "timeout", "1xx", "2xx", "3xx", "4xx", "5xx"}

// String is a code for metrics.
func (c Cause) String() string { return causeNames[c] }

// Causes is the number of causes.
const Causes = int(causes)

func causeOf(r Result) Cause {
	switch {
	case r.Own && r.Status == 504:
		return OnTimeout
	case r.Own:
		return OnError
	}
	return On1xx + Cause(min(max(r.Status/100-1, 0), 4))
}

// Final is why a walk ended.
type Final uint8

// The reasons.
const (
	Going          Final = iota // it has not ended
	Unlisted                    // the status is not in next_upstream_statuses
	LastStop                    // no upstream is left
	NotRepeatable               // a POST, LOCK or PATCH
	TimeUp                      // next_upstream_timeout
	BodyLost                    // the body is not held any more
	AllBlacklisted              // all upstreams were blacklisted: there was one stop
	NoBudget                    // the retry budget is spent
	Left                        // the client went away
	finals
)

var finalNames = [...]string{"", "answered", "last_stop", "not_repeatable", "timeout", "body_lost", "all_blacklisted", "no_budget", "client_gone"}

// String is a code for metrics and explanations.
func (f Final) String() string { return finalNames[f] }

// Finals is the number of reasons; the one of index 0 is none.
const Finals = int(finals)

// Counts is what was counted of an upstream in a list.
type Counts struct {
	Stops       uint64
	Jumps       [Causes]uint64 // from it to another stop
	Blacklisted uint64         // stamps
}

// Bounds are the upper ends of the parts into which times of walks are sorted, in seconds.
var Bounds = [...]float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// Totals is what was counted of an upstrand.
type Totals struct {
	Walks      uint64 // that entered a stop
	Stops      uint64
	Jumps      [Causes]uint64
	Finals     [Finals]uint64
	Intercepts uint64
	Cleared    uint64              // times that everything was blacklisted
	Seconds    float64             // of all walks, from the first stop to the decision that an answer is final
	Times      [len(Bounds)]uint64 // walks by how long they took; the rest of those that ended took longer than any bound
}

func (t *Totals) took(d time.Duration) {
	s := d.Seconds()
	t.Seconds += s
	for i, bound := range Bounds {
		if s <= bound {
			t.Times[i]++
			return
		}
	}
}

// entered counts a stop.
func (s *State) entered(w *Walk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Stops++
	if w.stops == 1 {
		s.counts.Walks++
	} else {
		s.counts.Jumps[w.cause]++
		if from := w.back(); from != nil {
			from.kept.counts.Jumps[w.cause]++
		}
	}
	if w.at != nil {
		w.at.kept.counts.Stops++
	}
}

// Intercepted counts an answer that is given in place of a walk's.
func (s *State) Intercepted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Intercepts++
}
