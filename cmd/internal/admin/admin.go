// Package admin serves what operators and orchestrators ask any role: is it alive (/healthz), may it be used and if not
// why (/readyz), its metrics (/metrics) and, where wanted, Go's profiles (/debug/pprof/).
//
// It is not the registry's API and knows no role: readiness comes from the checks that it is given.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// Readiness collects the reasons why a process is not ready. Safe for concurrent use.
type Readiness struct {
	mu     sync.Mutex
	names  []string
	checks map[string]func() error
	notes  map[string]func() string
}

// NewReadiness returns a Readiness that is ready: nothing speaks against it yet.
func NewReadiness() *Readiness {
	return &Readiness{checks: map[string]func() error{}, notes: map[string]func() string{}}
}

// Note lets name, which is one of Set, say something of itself while it is ready. An empty text is left out.
func (r *Readiness) Note(name string, note func() string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes[name] = note
}

// text is what a ready process answers: "ready", and a line for each note.
func (r *Readiness) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := []string{"ready"}
	for _, name := range r.names {
		if note := r.notes[name]; note != nil {
			if text := note(); text != "" {
				lines = append(lines, name+": "+text)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// Set puts check under name, in place of what stood there. The check must answer at once; nil means ready.
func (r *Readiness) Set(name string, check func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.checks[name]; !known {
		r.names = append(r.names, name)
	}
	r.checks[name] = check
}

// Hold makes name not ready for the given reason until the next Set.
func (r *Readiness) Hold(name, reason string) {
	r.Set(name, func() error { return errors.New(reason) })
}

// Err is nil when every check passes; else it has one line for each that does not: "listener: reads a backlog".
func (r *Readiness) Err() error {
	r.mu.Lock()
	names, checks := append([]string(nil), r.names...), make([]func() error, len(r.names))
	for i, n := range names {
		checks[i] = r.checks[n]
	}
	r.mu.Unlock()
	var lines []string
	for i, check := range checks {
		if err := check(); err != nil {
			lines = append(lines, names[i]+": "+err.Error())
		}
	}
	if lines == nil {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// Handler answers /healthz, /readyz and /metrics.
func Handler(ready *Readiness, metrics prometheus.Gatherer) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready.Err(); err != nil {
			answer(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		answer(w, http.StatusOK, ready.text())
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	return mux
}

// Profiles adds Go's profiles to mux. For addresses that only operators reach.
func Profiles(mux *http.ServeMux) {
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// Server is an HTTP server on a socket of its own.
type Server struct {
	ln   net.Listener
	srv  *http.Server
	left chan struct{} // closed by Leave
}

// Listen binds addr for what and logs the address that it got. flag is named in the error when the address is taken.
func Listen(addr, flag, what string, log zerolog.Logger) (net.Listener, error) {
	var conf net.ListenConfig
	conf.SetMultipathTCP(false) // nobody asks for it here, and it costs time
	ln, err := conf.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for %s (--%s): %w", addr, what, flag, err)
	}
	log.Info().Str("addr", ln.Addr().String()).Str("for", what).Msg("listening")
	return ln, nil
}

// NewServer serves h on ln once Run is called. It owns ln.
func NewServer(ln net.Listener, h http.Handler) *Server {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	return &Server{ln: ln, srv: srv, left: make(chan struct{})}
}

// Leave leaves the socket to another process: from now on Run takes no connections and only waits. It is called once.
func (s *Server) Leave() {
	close(s.left)
	s.srv.SetKeepAlivesEnabled(false)
	_ = s.ln.Close()
}

// drain is how long open requests have to end once the server stops.
const drain = 2 * time.Second

// Run serves until ctx ends; then it accepts nothing new and gives open requests a moment to end.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.srv.Serve(s.ln) }()
	select {
	case err := <-failed:
		select {
		case <-s.left:
			<-ctx.Done()
			return nil
		default:
			return fmt.Errorf("serve %s: %w", s.ln.Addr(), err)
		}
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := s.srv.Shutdown(bounded); err != nil {
		_ = s.srv.Close()
	}
	<-failed
	return nil
}
