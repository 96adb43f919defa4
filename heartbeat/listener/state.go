package listener

import (
	"fmt"
	"sync"
	"time"
)

// partState is what is known of one owned partition while it runs: where it stands, and whether both sides of it, the
// fetch and the transaction, are alive. Times are monotonic. It is safe for concurrent use.
type partState struct {
	part int32

	mu           sync.Mutex
	open         bool      // the stream is open and this owner has not been fenced since
	applied, end int64     // next offset in the registry, end of the log as last seen; -1: unknown
	reading      bool      // the last fetch went well
	away         bool      // the last transaction failed
	fetching     time.Time // start of the fetch under way, zero: none
	applying     time.Time // start of the transaction under way, zero: none
	caughtUp     time.Time // when applied was last seen at end, zero: never
	trouble      error     // what is wrong at the moment, for Ready
}

func newPartState(part int32) *partState { return &partState{part: part, applied: -1, end: -1} }

// opened says that the stream stands at offset next, or with ok false that it is no longer open.
func (s *partState) opened(next int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.applied = ok, next
	s.reading = false
	s.fetching, s.applying = time.Time{}, time.Time{}
	if ok {
		s.away = false
	}
}

func (s *partState) fetchBegins() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetching = time.Now()
}

// fetched ends a fetch. end is the log's end, ignored after an error.
func (s *partState) fetched(end int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetching = time.Time{}
	s.reading = err == nil
	if err != nil {
		s.trouble = err
		return
	}
	s.end = end
	s.look()
}

func (s *partState) applyBegins() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applying = time.Now()
}

// appliedTo ends a transaction. next is the offset it moved the stream to, ignored after an error.
func (s *partState) appliedTo(next int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applying = time.Time{}
	s.away = err != nil
	if err != nil {
		s.trouble = err
		return
	}
	s.applied = next
	s.look()
}

// look notes whether the partition is caught up. Callers hold mu.
func (s *partState) look() {
	if s.open && s.reading && s.applied >= s.end {
		s.caughtUp = time.Now()
	}
}

// alive reports whether pulses may be written: the stream is open, the last fetch and the last transaction went well,
// and none has been under way for longer than it ever should, fetch and stall.
func (s *partState) alive(fetch, stall time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open && s.reading && !s.away &&
		(s.fetching.IsZero() || time.Since(s.fetching) <= fetch+stall) &&
		(s.applying.IsZero() || time.Since(s.applying) <= stall)
}

// position is the offset that the registry holds and how far the log goes beyond it.
func (s *partState) position() (applied, lag int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied, max(s.end-s.applied, 0)
}

// ready is nil when the partition was caught up within the last grace.
func (s *partState) ready(grace time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.caughtUp.IsZero() && time.Since(s.caughtUp) <= grace {
		return nil
	}
	switch {
	case s.away, !s.reading && s.trouble != nil: // both come with trouble
		return fmt.Errorf("partition %d stands still: %w", s.part, s.trouble)
	case !s.open || s.end < 0 || s.applied < 0:
		return fmt.Errorf("partition %d is not being read yet", s.part)
	case !s.fetching.IsZero() && time.Since(s.fetching) > grace:
		return fmt.Errorf("partition %d waits for the broker's answer since %v", s.part, time.Since(s.fetching).Round(time.Second))
	}
	return fmt.Errorf("partition %d is %d records behind the end of its log", s.part, max(s.end-s.applied, 0))
}
