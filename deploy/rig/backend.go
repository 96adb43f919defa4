package rig

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// HeaderInstance is the answer's header that says which backend made it: service/id.
const HeaderInstance = "X-Instance"

// Backend is the HTTP server of an instance: it answers 200 to everything, says who it is, and counts.
type Backend struct {
	Name  string // service/id
	Addr  string
	Delay atomic.Int64 // nanoseconds before each answer

	served atomic.Int64
	last   atomic.Int64 // Unix nanoseconds of the newest request's arrival

	server *http.Server
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	done   chan struct{}
}

// NewBackend listens on addr; empty: on a free port.
func NewBackend(name, addr string) (*Backend, error) {
	if addr == "" {
		var err error
		if addr, err = FreeAddr(); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("rig: backend %s: %w", name, err)
	}
	b := &Backend{Name: name, Addr: addr, conns: map[net.Conn]struct{}{}, done: make(chan struct{})}
	b.server = &http.Server{Handler: b, ConnState: b.track, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(b.done)
		_ = b.server.Serve(l)
	}()
	return b, nil
}

// ServeHTTP answers a request.
func (b *Backend) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	b.last.Store(time.Now().UnixNano())
	b.served.Add(1)
	if d := time.Duration(b.Delay.Load()); d > 0 {
		time.Sleep(d) // a slow service, not a wait for something
	}
	w.Header().Set(HeaderInstance, b.Name)
	fmt.Fprintln(w, b.Name)
}

func (b *Backend) track(c net.Conn, s http.ConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch s {
	case http.StateNew:
		b.conns[c] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(b.conns, c)
	}
}

// Served is how many requests have come so far.
func (b *Backend) Served() int64 { return b.served.Load() }

// LastServed is when the newest request came; zero: none came.
func (b *Backend) LastServed() time.Time {
	if n := b.last.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// Kill ends the server as the death of its process would: nobody listens any more and every connection is reset, requests under
// way included.
func (b *Backend) Kill() {
	b.mu.Lock()
	for c := range b.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	b.mu.Unlock()
	_ = b.server.Close()
	<-b.done
}

// Shutdown ends the server after the requests under way, as a well-behaved service does.
func (b *Backend) Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = b.server.Shutdown(ctx)
	<-b.done
}
