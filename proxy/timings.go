package proxy

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// latencies are the bounds of the histograms.
var latencies = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
}

// timing is a histogram of how long something took. Every request is counted in two of them, so that one is no more than
// numbers: what Prometheus wants is made of them when it asks.
type timing struct {
	within [len(latencies) + 1]atomic.Uint64 // by the bound that it did not exceed; the last: all others
	micros atomic.Int64                      // sum, in microseconds: of nanoseconds those of many long tunnels are too many
}

// observe takes in one.
func (t *timing) observe(d time.Duration) {
	i := 0
	for i < len(latencies) && d > latencies[i] {
		i++
	}
	t.within[i].Add(1)
	t.micros.Add(int64((d + time.Microsecond/2) / time.Microsecond))
}

// count is the number of those taken in, and how many of them did not exceed each bound.
func (t *timing) count() (n uint64, within map[float64]uint64) {
	within = make(map[float64]uint64, len(latencies))
	for i := range t.within {
		n += t.within[i].Load()
		if i < len(latencies) {
			within[latencies[i].Seconds()] = n
		}
	}
	return n, within
}

// collect gives the histogram, unless it is empty, and the number of what was taken in.
func (t *timing) collect(to chan<- prometheus.Metric, desc *prometheus.Desc, since time.Time, labels ...string) uint64 {
	n, within := t.count()
	if n > 0 {
		sum := float64(t.micros.Load()) / float64(time.Second/time.Microsecond)
		to <- prometheus.MustNewConstHistogramWithCreatedTimestamp(desc, n, sum, within, since, labels...)
	}
	return n
}

// timingMetrics gives what services count of every request.
type timingMetrics struct {
	proxy *Proxy

	requests, seconds *prometheus.Desc // service, code
	headers           *prometheus.Desc // service
}

func newTimingMetrics(p *Proxy) *timingMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("upstrand_proxy_"+name, help, labels, nil)
	}
	return &timingMetrics{
		proxy:    p,
		requests: desc("requests_total", "Requests by service and class of the answer; none: the client left before it.", "service", "code"),
		seconds:  desc("request_seconds", "Time from a request's head to the end of its answer, by class of the answer.", "service", "code"),
		headers:  desc("upstream_header_seconds", "Time of an attempt until the head of the instance's answer.", "service"),
	}
}

// Describe is prometheus.Collector's.
func (m *timingMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.requests, m.seconds, m.headers} {
		to <- d
	}
}

// Collect is prometheus.Collector's. There are series of what there was something to count of.
func (m *timingMetrics) Collect(to chan<- prometheus.Metric) {
	live := m.proxy.services.live.Load()
	if live == nil {
		return
	}
	for name, s := range *live {
		for class := range s.codes {
			if n := s.codes[class].collect(to, m.seconds, s.since, name, codeClasses[class]); n > 0 {
				to <- prometheus.MustNewConstMetricWithCreatedTimestamp(m.requests, prometheus.CounterValue, float64(n), s.since, name, codeClasses[class])
			}
		}
		s.headers.collect(to, m.headers, s.since, name)
	}
}
