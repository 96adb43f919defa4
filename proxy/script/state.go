package script

// Holder is a request that carries a State.
type Holder interface {
	Script() *State
}

// State is what was computed for one request. It belongs to one goroutine. Begin makes it ready.
type State struct {
	values   []value
	subject  string // of the last match
	captures []int  // pairs of indexes into subject, [0:2] being the whole match; empty: no captures
	depth    int    // of variables that are computed to compute another
	circle   bool   // they went too deep: none of them has a value
	asked    int    // how many values were computed
	excess   bool   // too many, or one too large: there are no more values
}

type value struct {
	text string
	kind kind
}

type kind uint8

const (
	unknown kind = iota
	written      // by set or by a named capture
	kept         // computed once
	absent       // computed once: there is no value
)

// Begin forgets everything. Slots is Compiler.Slots of the configuration in force.
func (s *State) Begin(slots int) {
	if cap(s.values) < slots {
		s.values = make([]value, slots)
	} else {
		s.values = s.values[:slots]
		clear(s.values)
	}
	s.ForgetCaptures()
	s.depth, s.circle = 0, false
	s.asked, s.excess = 0, false
}

// maxDepth bounds how deep variables may lead to each other, as in nginx: two maps may name one another.
const maxDepth = 100

// Maps that name each other twice could make a value of any size, or work without end, of a short configuration.
const (
	maxValue = 1 << 20 // bytes of what variables add to one text
	maxAsked = 1 << 18 // values that are computed for one request
)

// Excess tells that a text became too large, or that too many values were asked for: texts were cut off, and what
// depends on them must not be trusted.
func (s *State) Excess() bool { return s.excess }

// enter begins to compute something that may ask for other variables; false: that led too deep, and not only here. Who
// goes on asking on the way back would ask exponentially often.
func (s *State) enter() bool {
	if s.depth >= maxDepth {
		s.circle = true
	}
	if s.asked++; s.asked > maxAsked {
		s.excess = true
	}
	if s.circle || s.excess {
		return false
	}
	s.depth++
	return true
}

// leave ends what enter began. It tells whether there is a value.
func (s *State) leave() bool {
	ok := !s.circle && !s.excess
	if s.depth--; s.depth == 0 {
		s.circle = false
	}
	return ok
}

// Script is Holder's, for requests that embed a State.
func (s *State) Script() *State { return s }

// Capture is the text of the n-th group of the last match, "" when it has none or took no part.
func (s *State) Capture(n int) string {
	if 2*n+1 >= len(s.captures) || s.captures[2*n] < 0 {
		return ""
	}
	return s.subject[s.captures[2*n]:s.captures[2*n+1]]
}

// ForgetCaptures makes $1 to $9 empty.
func (s *State) ForgetCaptures() { s.subject, s.captures = "", s.captures[:0] }
