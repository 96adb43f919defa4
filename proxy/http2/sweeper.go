package http2

import (
	"sync"
	"time"
)

// sweeper looks at all requests every now and then while there are connections.
type sweeper struct {
	mu      sync.Mutex
	every   time.Duration // 0: not known yet
	timer   *time.Timer
	running bool
	over    bool
	all     []*session // room for a sweep; guarded by the server's mutex
}

// wake has the sweeper look so often, unless it looks oftener.
func (s *Server) wake(every time.Duration) {
	w := &s.sweeper
	w.mu.Lock()
	defer w.mu.Unlock()
	faster := w.every == 0 || every < w.every
	if faster {
		w.every = every
	}
	if w.over || w.running && !faster {
		return
	}
	w.running = true
	if w.timer == nil {
		w.timer = time.AfterFunc(w.every, s.sweep)
	} else {
		w.timer.Reset(w.every)
	}
}

func (s *Server) sweep() {
	now := s.now()
	s.mu.Lock()
	all := s.sweeper.all[:0]
	s.sweeper.all = nil // when the limits of a new connection ask for more sweeps, two may be under way
	for x := range s.sessions {
		all = append(all, x)
	}
	s.mu.Unlock()
	for _, x := range all {
		x.sweep(now)
	}
	clear(all)
	s.mu.Lock()
	s.sweeper.all = all
	s.mu.Unlock()
	w := &s.sweeper
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running = !w.over && s.active.Load() > 0; w.running {
		w.timer.Reset(w.every)
	}
}

func (w *sweeper) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
