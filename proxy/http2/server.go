package http2

import (
	"context"
	"log"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/front"
)

// Server serves connections of clients that speak HTTP/2: their requests go to a forward.Handler. It is a
// front.ConnServer.
type Server struct {
	handler forward.Handler
	errors  *log.Logger
	began   time.Time
	sweeper sweeper

	mu       sync.Mutex
	sessions map[*session]struct{}
	none     chan struct{} // closed when no session is left after the end began
	over     bool

	leaving         atomic.Bool
	requests        atomic.Uint64
	active, writing atomic.Int64
}

// NewServer makes a server for connections of any door. What should not happen is told to errors.
func NewServer(h forward.Handler, errors *log.Logger) *Server {
	return &Server{handler: h, errors: errors, began: time.Now(), sessions: map[*session]struct{}{}, none: make(chan struct{})}
}

// ServeConn is front.ConnServer's. The connection speaks TLS and chose h2, or gives the client's preface first.
func (s *Server) ServeConn(c net.Conn, info front.ConnInfo) {
	x := newSession(s, c, info)
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		_ = c.Close()
		return
	}
	s.sessions[x] = struct{}{}
	s.mu.Unlock()
	s.active.Add(1)
	defer s.done(x)
	s.wake(tick(&x.info.Settings))
	x.run()
}

func (s *Server) done(x *session) {
	s.active.Add(-1)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, x)
	s.settle()
}

// settle closes none when that is true. The mutex is held.
func (s *Server) settle() {
	if !s.over || len(s.sessions) > 0 {
		return
	}
	select {
	case <-s.none:
	default:
		close(s.none)
	}
}

// Leave has each connection end with the answer that is begun next on it: the client is told to go elsewhere (GOAWAY),
// what it asked for before goes on. Unused connections stay.
func (s *Server) Leave() { s.leaving.Store(true) }

// Shutdown tells clients to go elsewhere (GOAWAY), lets their requests end until ctx does, and then cuts what is left. The
// error is ctx's when something was cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Leave()
	s.each(func(x *session) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.leave()
		x.settleIdle()
	})
	var err error
	select {
	case <-s.none:
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = s.Close()
	return err
}

// Close cuts everything.
func (s *Server) Close() error {
	s.each(func(x *session) { _ = x.conn.Close() })
	<-s.none
	s.sweeper.end()
	return nil
}

// each begins the end.
func (s *Server) each(f func(*session)) {
	s.mu.Lock()
	s.over = true
	s.settle()
	all := make([]*session, 0, len(s.sessions))
	for x := range s.sessions {
		all = append(all, x)
	}
	s.mu.Unlock()
	for _, x := range all {
		f(x)
	}
}

// Stats are the counters of now. Accepts and Handled are for whoever accepts; Active is of the connections that were handed
// over, Writing of their requests.
func (s *Server) Stats() front.Stats {
	active := s.active.Load()
	return front.Stats{Requests: s.requests.Load(), Active: active, Waiting: s.unused(), Writing: s.writing.Load()}
}

// unused is the connections without requests.
func (s *Server) unused() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.sessions {
		if x.stamps.unused.Load() != 0 {
			n++
		}
	}
	return n
}

// now is in nanoseconds since the start; never 0.
func (s *Server) now() int64 { return int64(time.Since(s.began)) + 1 }
