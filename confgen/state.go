package confgen

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// state is what others may ask of a running Generator. It is safe for concurrent use.
type state struct {
	window time.Duration // how long ago the database may have answered last

	mu       sync.Mutex
	lease    *lease // nil: standby
	answered time.Time
	failure  error
	note     string
}

// newState allows for six missed tries: a standby asks, and a leader renews, each third of a lease.
func newState(cfg Config) *state { return &state{window: 2 * cfg.Lease} }

// database takes the outcome of a call.
func (s *state) database(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	if err == nil {
		s.answered = time.Now()
	}
}

func (s *state) leads(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease, s.note = l, ""
}

func (s *state) setNote(note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note = note
}

func (s *state) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note
}

// leaseLeft is 0 for a standby.
func (s *state) leaseLeft() time.Duration {
	s.mu.Lock()
	l := s.lease
	s.mu.Unlock()
	if l == nil {
		return 0
	}
	return l.left()
}

func (s *state) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.answered.IsZero() && time.Since(s.answered) <= s.window:
		return nil
	case s.failure != nil:
		return fmt.Errorf("confgen: the database does not answer: %w", s.failure)
	}
	return errors.New("confgen: the database has not answered yet")
}
