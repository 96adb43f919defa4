package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/proxy/upstrand"
)

// strandMetrics gives the series of the upstrands in force, read when they are asked for: what goes out of force has none.
// What is counted outlives it no longer than the upstrand's State.
type strandMetrics struct {
	proxy *Proxy

	walks, ended, intercepts, cleared, seconds *prometheus.Desc // upstrand; ended: reason
	stops, jumps, blacklistings, blacklisted   *prometheus.Desc // upstrand, upstream, part; jumps: cause
}

func newStrandMetrics(p *Proxy) *strandMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("upstrand_proxy_upstrand_"+name, help, append([]string{"upstrand"}, labels...), nil)
	}
	return &strandMetrics{
		proxy:         p,
		walks:         desc("walks_total", "Requests that entered a stop of the upstrand."),
		ended:         desc("walks_ended_total", "Walks by why their last result was final.", "reason"),
		intercepts:    desc("intercepts_total", "Answers given in place of a walk's by intercept_statuses."),
		cleared:       desc("all_blacklisted_total", "Times that all upstreams were blacklisted, and therefore were taken off the list."),
		seconds:       desc("walk_seconds", "Time from a walk's first stop to the decision that a result is final."),
		stops:         desc("stops_total", "Stops that walks made at an upstream.", "upstream", "part"),
		jumps:         desc("jumps_total", "Walks that went on from an upstream to another, by the result that they left.", "upstream", "part", "cause"),
		blacklistings: desc("blacklistings_total", "Results of an upstream that put it on the blacklist, or kept it there.", "upstream", "part"),
		blacklisted:   desc("blacklisted", "1 as long as the upstream is on the blacklist.", "upstream", "part"),
	}
}

// Describe is prometheus.Collector's.
func (m *strandMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.walks, m.ended, m.intercepts, m.cleared, m.seconds, m.stops, m.jumps, m.blacklistings, m.blacklisted} {
		to <- d
	}
}

// Collect is prometheus.Collector's.
func (m *strandMetrics) Collect(to chan<- prometheus.Metric) {
	t := m.proxy.table.Load()
	if t == nil {
		return
	}
	now := m.proxy.clock()
	for _, name := range t.strandOrder {
		v := t.strands[name].upstrand.State.View(now)
		m.totals(to, &v)
		for i := range v.Members {
			m.member(to, v.Name, &v.Members[i])
		}
	}
}

func (m *strandMetrics) totals(to chan<- prometheus.Metric, v *upstrand.View) {
	total := &v.Totals
	counted(to, m.walks, total.Walks, v.Name)
	counted(to, m.intercepts, total.Intercepts, v.Name)
	counted(to, m.cleared, total.Cleared, v.Name)
	ended := uint64(0)
	for final, n := range total.Finals {
		if n > 0 {
			counted(to, m.ended, n, v.Name, upstrand.Final(final).String())
		}
		ended += n
	}
	within, buckets := uint64(0), make(map[float64]uint64, len(upstrand.Bounds))
	for i, bound := range upstrand.Bounds {
		within += total.Times[i]
		buckets[bound] = within
	}
	if h, err := prometheus.NewConstHistogram(m.seconds, ended, total.Seconds, buckets, v.Name); err == nil {
		to <- h
	}
}

func (m *strandMetrics) member(to chan<- prometheus.Metric, name string, member *upstrand.MemberView) {
	part := "main"
	if member.Backup {
		part = "backup"
	}
	counted(to, m.stops, member.Counts.Stops, name, member.Name, part)
	counted(to, m.blacklistings, member.Counts.Blacklisted, name, member.Name, part)
	for cause, n := range member.Counts.Jumps {
		if n > 0 {
			counted(to, m.jumps, n, name, member.Name, part, upstrand.Cause(cause).String())
		}
	}
	blocked := 0.0
	if member.BlockedUntil > 0 {
		blocked = 1
	}
	send(to, m.blacklisted, prometheus.GaugeValue, blocked, name, member.Name, part)
}

func counted(to chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	send(to, d, prometheus.CounterValue, float64(n), labels...)
}

// send leaves out what can't be a series: a file may give names that are no UTF-8.
func send(to chan<- prometheus.Metric, d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	if one, err := prometheus.NewConstMetric(d, kind, value, labels...); err == nil {
		to <- one
	}
}
