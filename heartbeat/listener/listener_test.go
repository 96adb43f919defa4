package listener

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
