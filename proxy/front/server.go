package front

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Server takes connections from clients and has a forward.Handler answer the requests on them.
type Server struct {
	settings Settings
	options  Options
	began    time.Time
	now      atomic.Int64 // milliseconds since began, as the sweeper has seen it last
	leaving  atomic.Bool  // each answer is the last on its connection
	closing  atomic.Bool

	accepts, handled atomic.Uint64
	refused          [Refusals]atomic.Uint64

	mu        sync.Mutex
	conns     []*conn
	perClient map[netip.Addr]int
	requests  uint64 // of connections that are over
	listeners map[net.Listener]struct{}
	empty     chan struct{} // closed when the last connection is gone after closing began
	sweeping  bool
	timer     *time.Timer
}

// NewServer makes a server that is not listening yet.
func NewServer(s Settings, o Options) *Server {
	return &Server{
		settings: s.withDefaults(), options: o, began: time.Now(), perClient: map[netip.Addr]int{},
		listeners: map[net.Listener]struct{}{}, empty: make(chan struct{}),
	}
}

// Serve accepts connections until Shutdown or Close, then returns nil. It closes the listener. It may be called for several
// listeners.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.listen(l) {
		return nil
	}
	defer s.unlisten(l)
	var pause time.Duration
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			s.take(nc)
			continue
		}
		if s.closing.Load() {
			return nil
		}
		var temporary interface{ Temporary() bool }
		if !errors.As(err, &temporary) || !temporary.Temporary() {
			return err
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.options.Log.Warn().Err(err).Dur("pause", pause).Msg("no connections can be accepted for now")
		time.Sleep(pause)
	}
}

func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) unlisten(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// take serves a connection that was accepted, or closes it when there are too many.
func (s *Server) take(nc net.Conn) {
	s.accepts.Add(1)
	if !s.enter(nc) {
		_ = nc.Close()
	}
}

func (s *Server) enter(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		s.refused[RefusedEnding].Add(1)
		return false
	}
	if s.settings.Conns > 0 && len(s.conns) >= s.settings.Conns {
		s.refused[RefusedConns].Add(1)
		return false
	}
	if most := s.settings.ConnsPerAddress; most > 0 {
		client := addrOf(nc.RemoteAddr()).Addr()
		if s.perClient[client] >= most {
			s.refused[RefusedPerAddress].Add(1)
			return false
		}
		s.perClient[client]++
	}
	s.handled.Add(1)
	s.startSweeper()
	c := newConn(s, nc)
	c.place = len(s.conns)
	s.conns = append(s.conns, c)
	go c.serve()
	return true
}

// leave is for a connection that is closed.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.conns) - 1
	s.conns[c.place] = s.conns[last]
	s.conns[c.place].place = c.place
	s.conns[last] = nil
	s.conns = s.conns[:last]
	s.requests += uint64(c.served.Load())
	if s.settings.ConnsPerAddress > 0 {
		client := c.info.Remote.Addr()
		if s.perClient[client]--; s.perClient[client] == 0 {
			delete(s.perClient, client)
		}
	}
	if s.closing.Load() && len(s.conns) == 0 {
		close(s.empty)
	}
}

// Leave has each connection end with the next answer on it. Everything else goes on: unused connections stay, and new ones
// are taken.
func (s *Server) Leave() { s.leaving.Store(true) }

// Shutdown is Leave, and stops accepting and closes unused connections. Requests and tunnels may end until ctx does, and what is
// left then is cut. The error is ctx's when something was cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.leaveAll(func(c *conn, seen int64) {
		if phase(seen&(1<<phaseBits-1)) == waiting {
			c.wake(seen)
		}
	})
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), s.Close())
	}
}

// Close cuts everything. It does not wait for handlers.
func (s *Server) Close() error {
	s.leaveAll(func(c *conn, _ int64) { c.cut() })
	return nil
}

// leaveAll stops accepting, and does something with all connections that there are.
func (s *Server) leaveAll(do func(c *conn, seen int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving.Store(true)
	if !s.closing.Swap(true) {
		if len(s.conns) == 0 {
			close(s.empty)
		}
		for l := range s.listeners {
			_ = l.Close()
		}
	}
	for _, c := range s.conns {
		do(c, c.stamp.Load())
	}
}

// Stats are the counters of now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Stats{Accepts: s.accepts.Load(), Handled: s.handled.Load(), Requests: s.requests}
	for i := range s.refused {
		out.Refused[i] = s.refused[i].Load()
	}
	for _, c := range s.conns {
		out.Requests += uint64(c.served.Load())
		switch _, p := c.phase(); p {
		case handed: // is counted by whom it was handed to
			continue
		case waiting:
			out.Waiting++
		case reading, shaking:
			out.Reading++
		default:
			out.Writing++
		}
		out.Active++
	}
	return out
}
