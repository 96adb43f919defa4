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
	budget *forward.Budget
	all    *metrics

	codes   [len(codeClasses)]atomic.Pointer[codeSeries]
	headers atomic.Pointer[prometheus.Observer]

	mu   sync.Mutex
	gone bool // its series are deleted; requests that still end make no new ones
}

// codeSeries is what is counted of answers of one class.
type codeSeries struct {
	requests prometheus.Counter
	seconds  prometheus.Observer
}

// count takes in how a request ended.
func (s *service) count(f *site.Finished) {
	class := f.Status / 100
	if class < 0 || class >= len(codeClasses) {
		class = 0
	}
	series := s.codes[class].Load()
	if series == nil {
		if series = s.make(class); series == nil {
			return
		}
	}
	series.requests.Inc()
	series.seconds.Observe(time.Duration(f.Ended - f.Began).Seconds())
	for i := range f.Trail {
		if f.Trail[i].Header >= 0 {
			s.countHeader(f.Trail[i].Header)
		}
	}
	if f.Exchange.Attempts > 1 || f.Exchange.Cause != "" {
		s.countRare(f.Exchange)
	}
}

func (s *service) make(class int) *codeSeries {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil
	}
	series := &codeSeries{s.all.requests.WithLabelValues(s.name, codeClasses[class]), s.all.seconds.WithLabelValues(s.name, codeClasses[class])}
	s.codes[class].Store(series)
	return series
}

func (s *service) countHeader(took time.Duration) {
	o := s.headers.Load()
	if o == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.gone {
			return
		}
		made := s.all.headers.WithLabelValues(s.name)
		o = &made
		s.headers.Store(o)
	}
	(*o).Observe(took.Seconds())
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

// forget deletes the service's series.
func (s *service) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	label := prometheus.Labels{"service": s.name}
	s.all.requests.DeletePartialMatch(label)
	s.all.seconds.DeletePartialMatch(label)
	s.all.headers.DeletePartialMatch(label)
	s.all.retries.DeletePartialMatch(label)
	s.all.noPeer.DeletePartialMatch(label)
	s.all.noSocket.DeletePartialMatch(label)
}

// services is those of the table in force. It is used under Proxy.applying.
type services struct {
	live map[string]*service
	make func(name string) *service
}

// get finds or makes the service of that name, and notes it in next.
func (all *services) get(name string, next map[string]*service) *service {
	s := next[name]
	if s == nil {
		if s = all.live[name]; s == nil {
			s = all.make(name)
		}
		next[name] = s
	}
	return s
}

// set makes next the live ones and forgets those that are not among them.
func (all *services) set(next map[string]*service) {
	for name, s := range all.live {
		if next[name] == nil {
			s.forget()
		}
	}
	all.live = next
}
