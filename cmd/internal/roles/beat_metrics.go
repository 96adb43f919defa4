package roles

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/heartbeat/sidecar"
)

// beatMetrics shows what a sidecar says of itself. All values of a scrape are of one moment.
type beatMetrics struct{ stats func() sidecar.Stats }

var (
	beatSent = prometheus.NewDesc("upstrand_beat_sent_total", "Beats that Kafka acknowledged, goodbyes included.", nil, nil)
	beatFail = prometheus.NewDesc("upstrand_beat_failed_total", "Attempts to send a beat that failed.", nil, nil)
	beatLast = prometheus.NewDesc("upstrand_beat_last_sent_timestamp_seconds", "Unix time of the last acknowledged beat; 0: none yet.", nil, nil)
	beatWell = prometheus.NewDesc("upstrand_beat_check_well", "1 while the checks say that the service is well (--rise, --fall).", nil, nil)
	beatLook = prometheus.NewDesc("upstrand_beat_checks_total", "Checks of the service that were made.", nil, nil)
	beatPass = prometheus.NewDesc("upstrand_beat_check_passes", "1 when the last check succeeded.", nil, nil)
	beatKid  = prometheus.NewDesc("upstrand_beat_child_running", "1 while the command after -- runs; 0 also when there is none.", nil, nil)
	beatTerm = prometheus.NewDesc("upstrand_beat_incarnation", "Incarnation that is beaten for, in Unix ms; 0 while nothing is said.", nil, nil)
	beatNth  = prometheus.NewDesc("upstrand_beat_incarnations_total", "Incarnations that were begun.", nil, nil)
)

// Describe lists the metrics.
func (m beatMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{beatSent, beatFail, beatLast, beatWell, beatLook, beatPass, beatKid, beatTerm, beatNth} {
		ch <- d
	}
}

// Collect asks the sidecar once.
func (m beatMetrics) Collect(ch chan<- prometheus.Metric) {
	st := m.stats()
	last := 0.0
	if !st.LastSent.IsZero() {
		last = float64(st.LastSent.UnixMilli()) / 1000
	}
	counter := func(d *prometheus.Desc, n int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	counter(beatSent, st.Sent)
	counter(beatFail, st.Failed)
	counter(beatLook, st.Checks)
	counter(beatNth, st.Incarnations)
	gauge(beatLast, last)
	gauge(beatWell, oneIf(st.Well))
	gauge(beatPass, oneIf(st.Checks > 0 && st.CheckError == nil))
	gauge(beatKid, oneIf(st.ChildRunning))
	gauge(beatTerm, float64(st.Incarnation))
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
