package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics is what the proxy counts beside what every request is counted in, which is timings. Series of a service are made when
// there is something to count and deleted when its last route goes.
type metrics struct {
	retries  *prometheus.CounterVec // service
	noPeer   *prometheus.CounterVec // service
	noSocket *prometheus.CounterVec // service
	unrouted *prometheus.CounterVec // code
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
		retries:  counter("retries_total", "Attempts beyond the first of a request.", "service"),
		noPeer:   counter("no_peer_total", "Requests for which there was no peer at all.", "service"),
		noSocket: counter("no_socket_total", "Requests for which this process had no file descriptor, or no memory, to reach a peer.", "service"),
		unrouted: counter("unrouted_requests_total", "Requests that no route took, by class of our answer.", "code"),
		version:  gauge("topology_version", "Version of the topology in force."),
		epoch:    gauge("topology_epoch", "Epoch of the topology in force."),
		problems: gauge("topology_problems", "Parts of the topology in force that could not be used."),
		shadowed: gauge("file_shadowed_upstreams", "Published upstreams that are not used because the file declares their name."),
		applies:  prometheus.NewCounter(prometheus.CounterOpts{Name: "upstrand_proxy_topology_applied_total", Help: "Topologies put in force."}),
		applying: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "upstrand_proxy_topology_apply_seconds",
			Help: "Time to build and store a table.", Buckets: prometheus.ExponentialBuckets(.0001, 4, 8)}),
	}
	all := []prometheus.Collector{m.retries, m.noPeer, m.noSocket, m.unrouted, m.version, m.epoch, m.problems, m.shadowed, m.applies, m.applying,
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
