package proxy

import (
	"context"
	"errors"
	"log"
	"net"
	"sync"

	"github.com/upstrand/upstrand/proxy/nethttp"
	"github.com/upstrand/upstrand/proxy/site"
)

// servers takes connections from clients: one engine for each set of limits.
type servers struct {
	proxy *Proxy

	mu   sync.Mutex
	all  map[nethttp.Settings]*nethttp.Server
	over bool
}

// of is the engine with those limits. After the end it serves nobody.
func (s *servers) of(limits nethttp.Settings) *nethttp.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made := s.all[limits]; made != nil {
		return made
	}
	made := nethttp.NewServer(limits, s.proxy, log.New(netLog{s.proxy.log}, "", 0))
	if s.over {
		_ = made.Close()
	}
	if s.all == nil {
		s.all = map[nethttp.Settings]*nethttp.Server{}
	}
	s.all[limits] = made
	return made
}

// shutdown ends all engines side by side.
func (s *servers) shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.over = true
	all := make([]*nethttp.Server, 0, len(s.all))
	for _, server := range s.all {
		all = append(all, server)
	}
	s.mu.Unlock()
	errs := make([]error, len(all))
	var ending sync.WaitGroup
	for i, server := range all {
		ending.Go(func() { errs[i] = server.Shutdown(ctx) })
	}
	ending.Wait()
	return errors.Join(errs...)
}

// stats is the counters of all engines.
func (s *servers) stats() (sum nethttp.Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.all {
		sum = sum.Plus(server.Stats())
	}
	return sum
}

// ServeDoor is Serve with the limits of a door.
func (p *Proxy) ServeDoor(l net.Listener, d Door) error {
	return p.serve(l, withLimits(p.config.Engine, d.Limits))
}

// withLimits is the settings of an engine with what a file says. A negative idle time keeps no connection.
func withLimits(s nethttp.Settings, l site.ClientLimits) nethttp.Settings {
	s.ClientHeader, s.ClientBody, s.ClientSend, s.ClientIdle = l.Header, l.Body, l.Send, l.Keepalive
	s.ClientAge, s.ClientRequests, s.ClientLine, s.ClientLines = l.Age, l.Requests, l.Line, l.Lines
	return s
}
