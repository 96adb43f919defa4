package proxy

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// service is what outlives tables about the target of routes: its metrics and its retry budget.
type service struct {
	name   string
	since  time.Time
	budget *forward.Budget
	all    *metrics

	codes   [len(codeClasses)]timing // of requests, by class of the answer
	headers timing                   // of attempts

	mu   sync.Mutex
	gone bool // its series are deleted; requests that still end make no new ones
}

// count takes in how a request ended.
func (s *service) count(f *site.Finished) {
	class := f.Status / 100
	if class < 0 || class >= len(codeClasses) {
		class = 0
	}
	s.codes[class].observe(time.Duration(f.Ended - f.Began))
	for i := range f.Trail {
		if took := f.Trail[i].Header; took >= 0 {
			s.headers.observe(took)
		}
	}
	if f.Exchange.Attempts > 1 || f.Exchange.Cause != "" {
		s.countRare(f.Exchange)
	}
}

var causeNoSocket = forward.NoSocket.String()

func (s *service) countRare(out *forward.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	if n := out.Retries(); n > 0 {
		s.all.retries.WithLabelValues(s.name).Add(float64(n))
	}
	if out.NoPeer {
		s.all.noPeer.WithLabelValues(s.name).Inc()
	}
	if out.Cause == causeNoSocket {
		s.all.noSocket.WithLabelValues(s.name).Inc()
	}
}

// forget deletes the service's series; its timings go with it.
func (s *service) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	label := prometheus.Labels{"service": s.name}
	s.all.retries.DeletePartialMatch(label)
	s.all.noPeer.DeletePartialMatch(label)
	s.all.noSocket.DeletePartialMatch(label)
}

// services is those of the table in force. It is used under Proxy.applying, but for live.
type services struct {
	live atomic.Pointer[map[string]*service] // never changed, but replaced; nil: there are none yet
	make func(name string) *service
}

// get finds or makes the service of that name, and notes it in next.
func (all *services) get(name string, next map[string]*service) *service {
	s := next[name]
	if s == nil {
		if live := all.live.Load(); live != nil {
			s = (*live)[name]
		}
		if s == nil {
			s = all.make(name)
		}
		next[name] = s
	}
	return s
}

// set makes next the live ones and forgets those that are not among them.
func (all *services) set(next map[string]*service) {
	before := all.live.Swap(&next)
	if before == nil {
		return
	}
	for name, s := range *before {
		if next[name] == nil {
			s.forget()
		}
	}
}
