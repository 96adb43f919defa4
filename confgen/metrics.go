package confgen

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	leader, epoch, version, revision, records prometheus.Gauge
	holding, holdWaiting, implausible         prometheus.Gauge
	versions, holds, repairs, written         prometheus.Counter
	terms, commits                            prometheus.Counter
	failures                                  *prometheus.CounterVec // by what failed
	publish, build, poll, topic               prometheus.Histogram
}

// newMetrics registers them; r may be nil.
func newMetrics(r prometheus.Registerer, s *state) (*metrics, error) {
	const ns, sub = "upstrand", "confgen"
	var all []prometheus.Collector
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help})
		all = append(all, g)
		return g
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help})
		all = append(all, c)
		return c
	}
	seconds := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)})
		all = append(all, h)
		return h
	}
	m := &metrics{
		leader:      gauge("leader", "1 while this process holds the lease."),
		epoch:       gauge("epoch", "Epoch of the lease held last."),
		version:     gauge("version", "Newest topology version in the database, as this leader knows it."),
		revision:    gauge("revision", "Registry revision that the topology was built from."),
		records:     gauge("records", "Live records of the topology."),
		holding:     gauge("holding", "1 while nothing is published because the database was restored."),
		holdWaiting: gauge("hold_partitions_waiting", "Heartbeat partitions whose stream clock the hold still waits for; standing still means that no listener pulses there."),
		implausible: gauge("agent_reports_ignored", "Agents' reports of an epoch or version too far above what is known here."),
		versions:    counter("versions_total", "Topology versions made."),
		holds:       counter("holds_total", "Times that publishing was held because the topic or an agent was ahead of the database."),
		repairs:     counter("repairs_total", "Records written again because the topic did not hold what this leader had last published."),
		written:     counter("records_written_total", "Records and tombstones appended to the topic, commits aside."),
		commits:     counter("commits_total", "Commit records appended to the topic."),
		terms:       counter("leaderships_total", "Times that this process took the lease."),
		publish:     seconds("publish_seconds", "From the append to the topic to its acknowledgement."),
		build:       seconds("build_seconds", "Building and encoding what changed."),
		poll:        seconds("poll_seconds", "Asking the registry for its revision and what changed."),
		topic:       seconds("topic_read_seconds", "Reading the own topic to its end."),
	}
	m.failures = prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: "failures_total",
		Help: "Failed operations by kind: begin, topic, registry, version, publish, agents, hold, housekeep, event."}, []string{"op"})
	left := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub, Name: "lease_left_seconds",
		Help: "How long this leader may still write without a renewal; 0 for a standby."}, func() float64 { return s.leaseLeft().Seconds() })
	all = append(all, m.failures, left)
	if r == nil {
		return m, nil
	}
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("confgen: register metrics: %w", err)
		}
	}
	return m, nil
}
