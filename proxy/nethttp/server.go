package nethttp

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"github.com/upstrand/upstrand/proxy/forward"
)

// Server takes requests from clients and hands them to a forward.Handler.
type Server struct {
	settings Settings
	handler  forward.Handler
	http     *http.Server

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
		Protocols:         only1,
		// OPTIONS * is the backends' to answer.
		DisableGeneralOptionsHandler: true,
	}
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
	if s.closing {
		s.closeIdle()
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c := &client{server: s, w: w, rc: http.NewResponseController(w)}
	c.stamp() // also for a 100 that net/http writes by itself
	req, body := s.request(r, c.rc)
	s.handler.Handle(r.Context(), req, c)
	if c.aborted {
		panic(http.ErrAbortHandler)
	}
	if body != nil && !c.taken {
		body.finish()
	}
}

func (s *Server) request(r *http.Request, rc *http.ResponseController) (*forward.Request, *replay) {
	req := &forward.Request{
		Method:    []byte(r.Method),
		Authority: []byte(r.Host),
		Target:    []byte(originForm(r.RequestURI)),
		Fields:    append(fieldsOf(r.Header), announced(r.Trailer)...),
		Length:    r.ContentLength,
		Remote:    remote(r.RemoteAddr),
		Secure:    r.TLS != nil,
	}
	if r.ContentLength == 0 {
		return req, nil
	}
	// An answer may begin before the body has ended; without this net/http would read the rest of it first.
	_ = rc.EnableFullDuplex()
	body := &replay{r: r, rc: rc, idle: s.settings.ClientBody, limit: s.settings.Replay}
	req.Body = body
	return req, body
}

// originForm takes the authority out of a target that a client sent as to a forward proxy.
func originForm(target string) string {
	if strings.HasPrefix(target, "/") {
		return target
	}
	_, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		if rest[i] == '?' {
			return "/" + rest[i:]
		}
		return rest[i:]
	}
	return "/"
}

func remote(addr string) netip.Addr {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
