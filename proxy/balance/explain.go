package balance

import (
	"slices"
	"time"
)

// How is by what rule a pick came to its peer.
type How uint8

// The rules.
const (
	Nobody    How = iota // none could be given
	ByWeight             // the greatest current weight of all that could be given
	ByTie                // likewise of those that the method liked alike
	ByMethod             // the method liked it best
	BySession            // the session is bound to it
	BySingle             // it is the only peer: no failures, no arithmetic
)

var howCodes = [...]string{"nobody", "weight", "tie", "method", "session", "single"}

// String is the code in the debug pages.
func (h How) String() string {
	if int(h) < len(howCodes) {
		return howCodes[h]
	}
	return "unknown"
}

// MarshalText writes the code.
func (h How) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// MarshalText writes the code.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Explanation is one pick with all that led to it: the state of every candidate before and after it, taken under the
// lock that the pick itself ran under.
type Explanation struct {
	Time     time.Time `json:"time"`
	Upstream string    `json:"upstream"`
	Method   string    `json:"method"`
	Part     string    `json:"part"` // main or backup: where the peer is from, or where nobody was found at last
	Try      int       `json:"try"`  // of this request in this upstream, from 1
	// Unit is what a weight of one counts in current and effective weights: 100 where slow_start is set, else 1.
	Unit       int         `json:"unit"`
	Winner     string      `json:"winner,omitempty"` // id of the peer; empty: nobody
	Addr       string      `json:"addr,omitempty"`
	Code       How         `json:"code"`
	Reason     Reason      `json:"reason"` // eligible, or the most telling of why nobody could be given
	Why        string      `json:"why"`    // the same for people
	Candidates []Candidate `json:"candidates"`
}

// Candidate is a peer in a pick: those of the main part in the order of declaration, when the pick looked there, then
// those of the backup part, when it looked there. Before is what the pick met, after is what it left.
type Candidate struct {
	ID              string   `json:"id"`
	Addr            string   `json:"addr"`
	Backup          bool     `json:"backup,omitempty"`
	Won             bool     `json:"won,omitempty"`
	Reason          Reason   `json:"reason"`           // eligible, or why it could not be given
	Passed          Passed   `json:"passed,omitempty"` // why another one was given, of one that could be
	Weight          int      `json:"weight"`           // as declared
	CurrentBefore   int      `json:"current_weight_before"`
	CurrentAfter    int      `json:"current_weight_after"`
	EffectiveBefore int      `json:"effective_weight_before"` // what a turn adds; the ramp of slow_start is in it
	EffectiveAfter  int      `json:"effective_weight_after"`
	Debt            int      `json:"debt"` // how far the effective weight is below the whole one, after the pick
	Conns           int      `json:"conns"`
	MaxConns        int      `json:"max_conns,omitempty"`
	Fails           int      `json:"fails,omitempty"`
	FailedUntil     int64    `json:"failed_until,omitempty"` // last Unix second of a failed peer's window
	Key             *float64 `json:"key,omitempty"`          // what the method compared: the least is best
}

// Passed says why a candidate that could be given was not.
type Passed string

// The reasons of those that could be given.
const (
	PassedForSession Passed = "session" // the session is bound to another one
	PassedByMethod   Passed = "method"  // the method liked another one better
	PassedByWeight   Passed = "weight"  // another one had a greater current weight
	PassedByOrder    Passed = "order"   // another one had the same current weight and stands before it
)

// bid is what round robin compared.
func (c *Candidate) bid() int { return c.CurrentBefore + c.EffectiveBefore }

// Explain has the next pick of this pass written to e.
func (p *Pass) Explain(e *Explanation) { p.explain = e }

// recordedMost is how many candidates the recorded picks of an upstream have together: some 50 MB.
const recordedMost = 200_000

// Record keeps the last n picks of the upstream, in all its groups, old and new; 0 keeps none. Of an upstream with very
// many peers it keeps fewer: as many as have 200,000 candidates together. Of those kept before, the n newest stay.
func (g *Group) Record(n int) {
	s := g.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	if n <= 0 {
		s.record = nil
		return
	}
	if s.record == nil {
		s.record = &recorder{}
	}
	s.record.limit = n
	s.record.trim()
}

// Picks gives the picks that Record kept, the oldest first. They must not be changed.
func (g *Group) Picks() []*Explanation {
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock()
	if g.shared.record == nil {
		return nil
	}
	return slices.Clone(g.shared.record.picks)
}

// recorder keeps the last picks of an upstream. The upstream's mutex guards it.
type recorder struct {
	picks      []*Explanation // the oldest first
	limit      int
	candidates int // of all
}

func (r *recorder) add(e *Explanation) {
	r.picks = append(r.picks, e)
	r.candidates += len(e.Candidates)
	r.trim()
}

// trim drops the oldest ones; the newest stays.
func (r *recorder) trim() {
	for len(r.picks) > r.limit || r.candidates > recordedMost && len(r.picks) > 1 {
		r.candidates -= len(r.picks[0].Candidates)
		r.picks[0] = nil
		r.picks = r.picks[1:]
	}
}
