package listener

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the listener's. Series that name a partition are deleted when the partition is lost.
type metrics struct {
	records  *prometheus.CounterVec // kind
	rejected *prometheus.CounterVec // reason
	ignored  *prometheus.CounterVec // reason
	applied  prometheus.Counter
	joined   prometheus.Counter
	stale    prometheus.Counter

	batchRecords prometheus.Histogram
	batchSeconds prometheus.Histogram

	owned       prometheus.Gauge
	generations prometheus.Counter
	clock       *prometheus.GaugeVec // partition
	lag         *prometheus.GaugeVec
	unproven    *prometheus.GaugeVec
	away        *prometheus.GaugeVec

	groupErrors   prometheus.Counter
	fetchErrors   prometheus.Counter
	applyErrors   prometheus.Counter
	commitErrors  prometheus.Counter
	pulses        prometheus.Counter
	pulseFailures prometheus.Counter
	fenced        prometheus.Counter
	restarts      prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	const prefix = "upstrand_listener_"
	var all []prometheus.Collector
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
		all = append(all, c)
		return c
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, []string{label})
		all = append(all, c)
		return c
	}
	gauges := func(name, help string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, []string{"partition"})
		all = append(all, g)
		return g
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets})
		all = append(all, h)
		return h
	}
	m := &metrics{
		records:  counters("records_total", "Records read from the heartbeat topic, by kind: beat, pulse, bad or control.", "kind"),
		rejected: counters("rejected_total", "Records that could not be used, by reason.", "reason"),
		ignored:  counters("ignored_total", "Valid beats that changed nothing, by reason.", "reason"),
		applied:  counter("applied_total", "Beats that moved an instance forward."),
		joined:   counter("joined_total", "Instances that appeared or came back."),
		stale:    counter("stale_total", "Instances that went stale."),

		batchRecords: histogram("batch_records", "Records of an applied batch.", prometheus.ExponentialBuckets(1, 4, 8)),
		batchSeconds: histogram("batch_seconds", "Time of a batch's transaction.", prometheus.ExponentialBuckets(0.001, 2, 15)),

		generations: counter("generations_total", "Generations of the consumer group that this listener took part in."),
		clock:       gauges("clock_seconds", "Stream clock of an owned partition."),
		lag:         gauges("lag_records", "Records between the applied offset and the end of the log."),
		unproven:    gauges("unproven_instances", "Overdue instances that are kept because too many are overdue at once. Not 0: look at the network between services and Kafka."),
		away:        gauges("database_away", "1 while the registry's database can't be written, so that the partition stands still."),

		groupErrors:   counter("group_errors_total", "Failures to join or stay in the consumer group."),
		fetchErrors:   counter("fetch_errors_total", "Failures to dial or read a partition."),
		applyErrors:   counter("apply_errors_total", "Transactions or openings of a stream that failed, without those that were fenced."),
		commitErrors:  counter("commit_errors_total", "Failures to commit offsets to Kafka, which only lag tools read."),
		pulses:        counter("pulses_total", "Pulses written."),
		pulseFailures: counter("pulse_failures_total", "Pulses that failed or whose end is not known."),
		fenced:        counter("fenced_total", "Batches dropped because another owner had been at work."),
		restarts:      counter("restarts_total", "Streams set to another offset: new, recreated topic, or records gone by retention."),
	}
	m.owned = prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "owned_partitions", Help: "Partitions that this listener owns."})
	all = append(all, m.owned)
	if reg == nil {
		return m, nil
	}
	var errs []error
	for _, c := range all {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("listener: register metrics: %w", err)
	}
	return m, nil
}

// forget deletes the series of a partition that was lost.
func (m *metrics) forget(part int32) {
	p := label(part)
	for _, g := range []*prometheus.GaugeVec{m.clock, m.lag, m.unproven, m.away} {
		g.DeleteLabelValues(p)
	}
}

func label(part int32) string { return strconv.Itoa(int(part)) }
