package http1

import (
	"sync"
	"time"
)

// sweepEvery is how often unused connections are looked at.
const sweepEvery = time.Second

// lookEvery is in which of so many sweeps an unused connection is asked whether its peer is done with it.
const lookEvery = 4

// sweeper closes unused connections whose time is over or whose peer is done with them. It has a timer, and only while
// there are such connections.
type sweeper struct {
	mu      sync.Mutex
	shelves map[*shelf]struct{} // with unused connections
	timer   *time.Timer
	closed  bool
}

// wake makes sure that a shelf is looked at.
func (w *sweeper) wake(s *shelf) {
	if s.watched.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || s.watched.Load() {
		return
	}
	s.watched.Store(true)
	if w.shelves == nil {
		w.shelves = map[*shelf]struct{}{}
	}
	w.shelves[s] = struct{}{}
	if len(w.shelves) > 1 {
		return
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(sweepEvery, w.sweep)
	} else {
		w.timer.Reset(sweepEvery)
	}
}

func (w *sweeper) sweep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	now := moment()
	for s := range w.shelves {
		// First, so that who puts one in from here on wakes the sweeper again.
		s.watched.Store(false)
		dead, left := s.expire(now)
		closeEach(dead)
		if left {
			s.watched.Store(true)
		} else {
			delete(w.shelves, s)
		}
	}
	if len(w.shelves) > 0 {
		w.timer.Reset(sweepEvery)
	}
}

func (w *sweeper) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
