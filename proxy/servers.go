package proxy

import (
	"context"
	"errors"
	"log"
	"net"
	"sync"

	"github.com/upstrand/upstrand/proxy/front"
	"github.com/upstrand/upstrand/proxy/http2"
	"github.com/upstrand/upstrand/proxy/site"
)

// servers takes connections from clients: one engine for each set of limits, and one for those that speak HTTP/2.
type servers struct {
	proxy *Proxy
	http2 *http2.Server

	mu      sync.Mutex
	all     map[front.Settings]*front.Server
	leaving bool
	over    bool
}

// begin is called once, before anything else.
func (s *servers) begin(p *Proxy) {
	s.proxy, s.http2 = p, http2.NewServer(p, log.New(netLog{p.log}, "", 0))
	s.all = map[front.Settings]*front.Server{}
}

// of is the engine with those limits. After the end it serves nobody.
func (s *servers) of(limits front.Settings) *front.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made := s.all[limits]; made != nil {
		return made
	}
	made := front.NewServer(limits, front.Options{Handler: s.proxy, TLS: s.proxy.tls.of, HTTP2: s.http2, Log: s.proxy.log, Refused: s.proxy.refused})
	switch {
	case s.over:
		_ = made.Close()
	case s.leaving:
		made.Leave()
	}
	s.all[limits] = made
	return made
}

// leave has each connection end with the next answer on it.
func (s *servers) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	for _, server := range s.all {
		server.Leave()
	}
	s.http2.Leave()
}

// shutdown ends all engines side by side.
func (s *servers) shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.over = true
	ends := []func(context.Context) error{s.http2.Shutdown}
	for _, server := range s.all {
		ends = append(ends, server.Shutdown)
	}
	s.mu.Unlock()
	errs := make([]error, len(ends))
	var ending sync.WaitGroup
	for i, end := range ends {
		ending.Go(func() { errs[i] = end(ctx) })
	}
	ending.Wait()
	return errors.Join(errs...)
}

// stats is the counters of all engines.
func (s *servers) stats() front.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.http2.Stats()
	for _, server := range s.all {
		sum = sum.Plus(server.Stats())
	}
	return sum
}

// ServeDoor is Serve with the limits of a door.
func (p *Proxy) ServeDoor(l net.Listener, d Door) error {
	p.tls.opened(d)
	s := p.config.Engine
	if d.Limits != (site.ClientLimits{}) {
		s = withLimits(s, d.Limits)
	}
	s.TLS, s.HTTP2, s.ProxyProtocol = d.TLS, d.HTTP2, d.ProxyProtocol
	if s.Conns, s.ConnsPerAddress = d.Conns, d.ConnsPerAddress; s.Conns > 0 || s.ConnsPerAddress > 0 {
		s.Listener = l.Addr().String() // it counts its own
	}
	return p.serve(l, s)
}

// withLimits is the settings of an engine with what a file says. A negative idle time keeps no connection.
func withLimits(s front.Settings, l site.ClientLimits) front.Settings {
	s.ClientHeader, s.ClientBody, s.ClientSend, s.ClientIdle = l.Header, l.Body, l.Send, l.Keepalive
	s.ClientAge, s.ClientRequests, s.ClientLine, s.ClientLines, s.ClientStreams = l.Age, l.Requests, l.Line, l.Lines, l.Streams
	return s
}
