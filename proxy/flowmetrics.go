package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/proxy/front"
)

// flowMetrics gives what goes on at the moment, read when it is asked for: connections of clients, and attempts in work.
type flowMetrics struct {
	proxy *Proxy

	connections, accepted, refused, served *prometheus.Desc
	inFlight, queued                       *prometheus.Desc // upstream
	dropped, failed                        *prometheus.Desc
}

func newFlowMetrics(p *Proxy) *flowMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("upstrand_proxy_"+name, help, labels, nil)
	}
	return &flowMetrics{
		proxy:       p,
		connections: desc("client_connections", "Open connections of clients, by what they are at; all: their number.", "state"),
		accepted:    desc("client_connections_accepted_total", "Connections that clients made."),
		refused:     desc("client_connections_refused_total", "Connections that ended before any request, by reason.", "reason"),
		served:      desc("client_requests_total", "Requests that clients sent."),
		inFlight:    desc("upstream_in_flight", "Attempts in work at the upstream's peers.", "upstream"),
		queued:      desc("upstream_queued", "Requests that wait in the upstream's queue for a peer.", "upstream"),
		dropped:     desc("access_log_dropped_total", "Lines of access logs that were not written: a file took too long."),
		failed:      desc("access_log_failed_total", "Writes of access logs that failed."),
	}
}

// Describe is prometheus.Collector's.
func (m *flowMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.connections, m.accepted, m.refused, m.served, m.inFlight, m.queued, m.dropped, m.failed} {
		to <- d
	}
}

// Collect is prometheus.Collector's.
func (m *flowMetrics) Collect(to chan<- prometheus.Metric) {
	s := m.proxy.servers.stats()
	for state, n := range map[string]int64{"all": s.Active, "reading": s.Reading, "writing": s.Writing, "waiting": s.Waiting} {
		to <- prometheus.MustNewConstMetric(m.connections, prometheus.GaugeValue, float64(n), state)
	}
	counted(to, m.accepted, s.Accepts)
	for why, n := range s.Refused {
		to <- prometheus.MustNewConstMetric(m.refused, prometheus.CounterValue, float64(n), front.Refusal(why).String())
	}
	counted(to, m.served, s.Requests)
	dropped, failed := m.proxy.config.Logs.Counts()
	counted(to, m.dropped, uint64(dropped))
	counted(to, m.failed, uint64(failed))
	t := m.proxy.table.Load()
	if t == nil {
		return
	}
	for _, name := range t.order {
		g := t.groups[name].group
		to <- prometheus.MustNewConstMetric(m.inFlight, prometheus.GaugeValue, float64(g.Open()), name)
		if g.Queues() {
			to <- prometheus.MustNewConstMetric(m.queued, prometheus.GaugeValue, float64(g.Waiting()), name)
		}
	}
}
