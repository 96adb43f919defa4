package listener

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/registry"
)

func TestConfigSaysAllThatIsWrong(t *testing.T) {
	_, err := New(Config{PulseInterval: -1, SessionTimeout: time.Second, HeartbeatInterval: 2 * time.Second, Owner: strings.Repeat("x", 200)})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"no brokers", "no topic", "no group id", "no recorder", "pulse interval", "heartbeat interval", "owner"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestNewStartsNothingAndRegistersOnce(t *testing.T) {
	reg := prometheus.NewRegistry()
	cfg := scaled("127.0.0.1:1", newFakeRegistry())
	cfg.Registerer = reg
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(); err == nil || !strings.Contains(err.Error(), "not a member") {
		t.Errorf("ready: %v", err)
	}
	if _, err := New(cfg); err == nil {
		t.Error("metrics were registered twice")
	}
	families, err := reg.Gather()
	if err != nil || len(families) < 10 {
		t.Errorf("%d families, %v", len(families), err)
	}
	if a, b := newOwner(), newOwner(); a == b || len(a) > maxOwner {
		t.Errorf("owners %q and %q", a, b)
	}
}

// The series of a partition go with it.
func TestMetricsForgetALostPartition(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	series := func() (n int) {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, s := range f.Metric {
				for _, l := range s.Label {
					if l.GetName() == "partition" {
						n++
					}
				}
			}
		}
		return n
	}
	for _, p := range []string{"0", "1"} {
		m.clock.WithLabelValues(p).Set(1)
		m.lag.WithLabelValues(p).Set(1)
		m.unproven.WithLabelValues(p).Set(1)
		m.away.WithLabelValues(p).Set(1)
	}
	m.forget(1)
	if got := series(); got != 4 {
		t.Errorf("%d series after one of two partitions was lost", got)
	}
}

func TestHalves(t *testing.T) {
	batch := func(records, rejected []int64) registry.Batch {
		b := registry.Batch{From: 0, Next: 100, LogEnd: 100, CaughtUp: true}
		for _, o := range records {
			b.Records = append(b.Records, registry.Record{Offset: o})
		}
		for _, o := range rejected {
			b.Rejected = append(b.Rejected, registry.Rejected{Offset: o})
		}
		return b
	}
	for name, b := range map[string]registry.Batch{
		"records":         batch([]int64{1, 2, 3, 50, 99}, nil),
		"two records":     batch([]int64{7, 90}, nil),
		"rejected":        batch(nil, []int64{0, 1, 2}),
		"one of each":     batch([]int64{5}, []int64{9}),
		"one of each too": batch([]int64{9}, []int64{5}),
		"mixed":           batch([]int64{1, 3, 5, 7}, []int64{2, 4, 6, 99}),
	} {
		left, right, ok := halves(b)
		if !ok || left.From != 0 || left.Next != right.From || right.Next != 100 || left.CaughtUp || !right.CaughtUp ||
			len(left.Records)+len(left.Rejected) == 0 || len(right.Records)+len(right.Rejected) == 0 ||
			len(left.Records)+len(right.Records) != len(b.Records) || len(left.Rejected)+len(right.Rejected) != len(b.Rejected) {
			t.Errorf("%s: %+v | %+v", name, left, right)
		}
		for _, r := range left.Records {
			if r.Offset >= left.Next {
				t.Errorf("%s: record %d is left of %d", name, r.Offset, left.Next)
			}
		}
		for _, r := range right.Rejected {
			if r.Offset < right.From {
				t.Errorf("%s: bad record %d is right of %d", name, r.Offset, right.From)
			}
		}
	}
	if _, _, ok := halves(batch([]int64{4}, nil)); ok {
		t.Error("one record was cut in two")
	}
}
