package nethttp

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"

	"github.com/upstrand/upstrand/proxy/forward"
)

// Server takes requests from clients and hands them to a forward.Handler.
type Server struct {
	settings Settings
	handler  forward.Handler
	http     *http.Server
	tally    tally

	mu      sync.Mutex
	tunnels map[*tunnel]struct{}
	idle    chan struct{} // closed when the last tunnel ends after closing began
	closing bool
}

// NewServer makes a server that is not listening yet. Complaints of net/http about single connections go to errors.
func NewServer(s Settings, h forward.Handler, errors *log.Logger) *Server {
	srv := &Server{settings: s.withDefaults(), handler: h, tunnels: map[*tunnel]struct{}{}, idle: make(chan struct{})}
	only1 := new(http.Protocols)
	only1.SetHTTP1(true)
	srv.http = &http.Server{
		Handler:           http.HandlerFunc(srv.serve),
		ReadHeaderTimeout: srv.settings.ClientHeader,
		IdleTimeout:       srv.settings.ClientIdle,
		MaxHeaderBytes:    srv.settings.ClientMax,
		ErrorLog:          errors,
		ConnContext:       srv.tally.enter,
		ConnState:         srv.tally.state,
		Protocols:         only1,
		// OPTIONS * is for the backends of the host's root.
		DisableGeneralOptionsHandler: true,
	}
	srv.http.SetKeepAlivesEnabled(srv.settings.ClientIdle > 0)
	return srv
}

// Serve accepts connections until Shutdown or Close, then returns nil. It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting, lets requests and tunnels end until ctx does, and then cuts what is left. The error is
// ctx's when something was cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		s.closeIdle()
	}
	s.mu.Unlock()
	err := s.http.Shutdown(ctx)
	if err == nil {
		select {
		case <-s.idle:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return errors.Join(err, s.Close())
}

// Close cuts everything.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		s.closeIdle()
	}
	open := make([]*tunnel, 0, len(s.tunnels))
	for t := range s.tunnels {
		open = append(open, t)
	}
	s.mu.Unlock()
	for _, t := range open {
		_ = t.Close()
	}
	return s.http.Close()
}

// closeIdle closes idle when no tunnel is open. The mutex is held and closing is set.
func (s *Server) closeIdle() {
	if len(s.tunnels) == 0 {
		close(s.idle)
	}
}

func (s *Server) enter(t *tunnel) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return errShutDown
	}
	s.tunnels[t] = struct{}{}
	return nil
}

func (s *Server) leave(t *tunnel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.tunnels[t]; !open {
		return
	}
	delete(s.tunnels, t)
	s.tally.active.Add(-1)
	if s.closing {
		s.closeIdle()
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c := &client{server: s, w: w, rc: http.NewResponseController(w)}
	s.tally.requests.Add(1)
	s.tally.writing.Add(1)
	defer s.tally.writing.Add(-1)
	c.stamp() // also for a 100 that net/http writes by itself
	req, body := s.request(r, c.rc)
	c.body = body
	c.old = !r.ProtoAtLeast(1, 1)
	// Without a word net/http drops a Content-Length beside Transfer-Encoding, and Transfer-Encoding in HTTP/1.0. So every
	// chunked request, and every one of HTTP/1.0, may be one that somebody before us ended elsewhere: what follows it is
	// never taken for a request.
	c.last = req.Length < 0 || c.old || req.Invalid != ""
	if v := visitOf(r.Context()); v != nil {
		c.last = s.spent(v) || c.last
		req.Connection, req.Served = v.number, v.requests.Load()
	}
	defer c.settle()
	s.handler.Handle(r.Context(), req, c)
	if !c.taken && (c.aborted || !c.headed) { // without a head net/http would make up a 200
		panic(http.ErrAbortHandler)
	}
}
