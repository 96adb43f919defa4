package proxy

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/proxy/forward"
)

// metrics is what the proxy counts. Series of a service are made when there is something to count and deleted when its
// last route goes.
type metrics struct {
	requests *prometheus.CounterVec   // service, code
	seconds  *prometheus.HistogramVec // service
	retries  *prometheus.CounterVec   // service
	noPeer   *prometheus.CounterVec   // service
	unrouted *prometheus.CounterVec   // code
	version  prometheus.Gauge
	epoch    prometheus.Gauge
	problems prometheus.Gauge
	shadowed prometheus.Gauge
	applies  prometheus.Counter
	applying prometheus.Histogram
}

var codeClasses = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

func newMetrics(r prometheus.Registerer, age func() float64) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "upstrand_proxy_" + name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "upstrand_proxy_" + name, Help: help})
	}
	m := &metrics{
		requests: counter("requests_total", "Requests by service and class of the answer; none: the client left before it.", "service", "code"),
		retries:  counter("retries_total", "Attempts beyond the first of a request.", "service"),
		noPeer:   counter("no_peer_total", "Requests for which there was no peer at all.", "service"),
		unrouted: counter("unrouted_requests_total", "Requests that no route took, by class of our answer.", "code"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "upstrand_proxy_request_seconds",
			Help:    "Time from a request's head to the end of its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"service"}),
		version:  gauge("topology_version", "Version of the topology in force."),
		epoch:    gauge("topology_epoch", "Epoch of the topology in force."),
		problems: gauge("topology_problems", "Parts of the topology in force that could not be used."),
		shadowed: gauge("file_shadowed_upstreams", "Published upstreams that are not used because the file declares their name."),
		applies:  prometheus.NewCounter(prometheus.CounterOpts{Name: "upstrand_proxy_topology_applied_total", Help: "Topologies put in force."}),
		applying: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "upstrand_proxy_topology_apply_seconds",
			Help: "Time to build and store a table.", Buckets: prometheus.ExponentialBuckets(.0001, 4, 8)}),
	}
	all := []prometheus.Collector{m.requests, m.retries, m.noPeer, m.unrouted, m.seconds, m.version, m.epoch, m.problems, m.shadowed, m.applies, m.applying,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "upstrand_proxy_topology_age_seconds",
			Help: "Time since the topology in force was committed; -1 without one."}, age)}
	if r == nil {
		return m, nil
	}
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) applied(t *table, took time.Duration) {
	if t.topology != nil {
		m.version.Set(float64(t.topology.Version))
		m.epoch.Set(float64(t.topology.Epoch))
	}
	m.shadowed.Set(float64(len(t.shadowed)))
	m.problems.Set(float64(len(t.problems)))
	m.applies.Inc()
	m.applying.Observe(took.Seconds())
}

// service is what outlives tables about the target of routes: its metrics and its retry budget.
type service struct {
	name   string
	budget *forward.Budget
	all    *metrics

	codes   [len(codeClasses)]atomic.Pointer[prometheus.Counter]
	latency atomic.Pointer[prometheus.Observer]

	mu   sync.Mutex
	gone bool // its series are deleted; requests that still end make no new ones
}

// count takes in how a request ended.
func (s *service) count(out *forward.Outcome, took time.Duration) {
	class := out.Status / 100
	if class < 0 || class >= len(codeClasses) {
		class = 0
	}
	counter, latency := s.codes[class].Load(), s.latency.Load()
	if counter == nil || latency == nil {
		if counter, latency = s.make(class); counter == nil {
			return
		}
	}
	(*counter).Inc()
	(*latency).Observe(took.Seconds())
	if out.Retries() > 0 || out.NoPeer {
		s.countRare(out)
	}
}

func (s *service) make(class int) (*prometheus.Counter, *prometheus.Observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, nil
	}
	counter := s.all.requests.WithLabelValues(s.name, codeClasses[class])
	latency := s.all.seconds.WithLabelValues(s.name)
	s.codes[class].Store(&counter)
	s.latency.Store(&latency)
	return &counter, &latency
}

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
}

// forget deletes the service's series.
func (s *service) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	label := prometheus.Labels{"service": s.name}
	s.all.requests.DeletePartialMatch(label)
	s.all.seconds.DeletePartialMatch(label)
	s.all.retries.DeletePartialMatch(label)
	s.all.noPeer.DeletePartialMatch(label)
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
