package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func counter(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// TestCommitToApply measures from the commit being in the log to the topology handed over, with 10,000 instances and
// one join each time. The target of 50 ms is for a machine of one's own; here it only must not be far off.
func TestCommitToApply(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	w := newWorld(t)
	const instances, joins = fleetSize, 20
	w.publish(config("orders", instances))
	a := w.start(func(c *Config) { c.MaxWait = 250 * time.Millisecond })
	a.sink.isAt(t, 1, instances)
	var took []time.Duration
	for n := range joins {
		w.publish(config("orders", instances+n+1))
		sent := time.Now()
		a.sink.isAt(t, w.version, instances+n+1)
		a.sink.mu.Lock()
		took = append(took, max(a.sink.at[len(a.sink.at)-1].Sub(sent), 0))
		a.sink.mu.Unlock()
	}
	slices.Sort(took)
	t.Logf("commit to apply at %d instances: median %v, worst of %d %v", instances, took[joins/2], joins, took[joins-1])
	if took[joins/2] > time.Second {
		t.Errorf("median %v", took[joins/2])
	}
}
