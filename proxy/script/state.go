package script

import "unsafe"

// Holder is a request that carries a State.
type Holder interface {
	Script() *State
}

// State is what was computed for one request. It belongs to one goroutine. Begin makes it ready.
type State struct {
	used     bool // anything was put into it since Begin, but for values, which have slots
	circle   bool // variables that are computed to compute another went too deep: none of them has a value
	excess   bool // too many values, or one too large: there are no more
	depth    int  // of those variables
	asked    int  // how many values were computed
	values   []value
	captures []int    // pairs of indexes into subject, [0:2] being the whole match; empty: no captures
	kept     []byte   // texts that were made
	subject  string   // of the last match
	free     [][]byte // for texts that are being made
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
	if slots > 0 {
		if cap(s.values) < slots {
			s.values = make([]value, slots)
		} else {
			s.values = s.values[:slots]
			clear(s.values)
		}
	}
	if s.used {
		s.forget()
	}
}

// forget takes out what a request has left, but for values.
func (s *State) forget() {
	s.used = false
	s.ForgetCaptures()
	s.depth, s.circle = 0, false
	s.asked, s.excess = 0, false
	if cap(s.kept) > mostKept {
		s.kept = nil
	}
	s.kept = s.kept[:0]
}

// mostKept is how much memory for texts a State keeps for the next request, in bytes.
const mostKept = 16 << 10

// Keep copies a text into memory of the request: it is valid until the next Begin.
func (s *State) Keep(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	s.used = true
	if len(b) > cap(s.kept)-len(s.kept) {
		// What was kept before stays where it is, as long as somebody has it: pieces are small, so that no request collects all
		// the text that it ever made.
		s.kept = make([]byte, 0, max(1<<10, min(2*cap(s.kept), mostKept), len(b)))
	}
	from := len(s.kept)
	s.kept = append(s.kept, b...)
	return unsafe.String(&s.kept[from], len(b))
}

// Borrow gives memory to make a text in, until GiveBack. Others may be made meanwhile.
func (s *State) Borrow() []byte {
	if n := len(s.free) - 1; n >= 0 {
		b := s.free[n]
		s.free = s.free[:n]
		return b[:0]
	}
	return make([]byte, 0, 256)
}

// GiveBack takes it again, however it has grown.
func (s *State) GiveBack(b []byte) {
	if cap(b) <= mostKept && len(s.free) < maxDepth {
		s.free = append(s.free, b)
	}
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
	s.used = true
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

// overflow is for a text that became too large.
func (s *State) overflow() { s.used, s.excess = true, true }

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
