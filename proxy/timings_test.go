package proxy

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestTimingsAreHistograms: what they give is what Prometheus's own histogram gives of the same durations.
func TestTimingsAreHistograms(t *testing.T) {
	var (
		own    timing
		bounds []float64
	)
	for _, l := range latencies {
		bounds = append(bounds, l.Seconds())
	}
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "x", Buckets: bounds})
	for _, l := range latencies {
		for _, d := range []time.Duration{0, l - 1, l, l + 1, 2 * l, time.Hour} {
			own.observe(d)
			theirs.Observe(d.Seconds())
		}
	}
	desc := prometheus.NewDesc("x", "", []string{"service"}, nil)
	to := make(chan prometheus.Metric, 1)
	if n := new(timing).collect(to, desc, time.Now(), "s"); n != 0 || len(to) != 0 {
		t.Errorf("%d of an empty one", n)
	}
	n := own.collect(to, desc, time.Now(), "s")
	var got, want dto.Metric
	if err := (<-to).Write(&got); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Write(&want); err != nil {
		t.Fatal(err)
	}
	g, w := got.GetHistogram(), want.GetHistogram()
	if n != w.GetSampleCount() || g.GetSampleCount() != n || math.Abs(g.GetSampleSum()-w.GetSampleSum()) > float64(n)*1e-6 || len(g.GetBucket()) != len(w.GetBucket()) {
		t.Fatalf("%v\nwant %v", g, w)
	}
	for i, b := range w.GetBucket() {
		if h := g.GetBucket()[i]; h.GetUpperBound() != b.GetUpperBound() || h.GetCumulativeCount() != b.GetCumulativeCount() {
			t.Errorf("bucket %d: %v, want %v", i, h, b)
		}
	}
}
