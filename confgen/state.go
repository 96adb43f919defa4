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
	stuck  time.Duration // for how long a leader may fail to publish

	mu       sync.Mutex
	lease    *lease // nil: standby
	answered time.Time
	failure  error
	note     string
	leader   string    // the other holder, as far as a standby knows
	trouble  error     // what keeps this process, as leader, from publishing; nil: nothing
	since    time.Time // trouble began
}

// newState allows for six missed tries: a standby asks, and a leader renews, each third of a lease.
func newState(cfg Config) *state { return &state{window: 2 * cfg.Lease, stuck: cfg.StuckAfter} }

// database takes the outcome of a call.
func (s *state) database(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	if err == nil {
		s.answered = time.Now()
	}
}

// work takes the outcome of a leader's round. Failures go on over the terms of one process: they may be what ends each.
func (s *state) work(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == nil && err != nil {
		s.since = time.Now()
	}
	s.trouble = err
}

func (s *state) leads(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease, s.note, s.leader = l, "", ""
}

// follows notes who leads while this Generator stands by, and reports whether that is news. An unknown name is empty.
func (s *state) follows(leader string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.leader != leader
	s.leader = leader
	return news
}

// role is what this Generator does now, for people.
func (s *state) role() string {
	if s.leaseLeft() > 0 {
		return "leads"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader != "" {
		return "stands by; " + s.leader + " leads"
	}
	return "stands by"
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
	case s.trouble != nil && time.Since(s.since) >= s.stuck:
		return fmt.Errorf("confgen: leads, but has not been able to publish for %v: %w", time.Since(s.since).Round(time.Second), s.trouble)
	case !s.answered.IsZero() && time.Since(s.answered) <= s.window:
		return nil
	case s.failure != nil:
		return fmt.Errorf("confgen: the database does not answer: %w", s.failure)
	}
	return errors.New("confgen: the database has not answered yet")
}
