package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

// The network between 20 of 30 instances of a service and Kafka is cut while they go on serving: traffic goes on to all 30, the
// other services' dead instances still go, and a service of one instance that is cut off alone goes stale as it should.
func TestPartialCut(t *testing.T) {
	t.Parallel()
	w := start(t, shape{proxies: 2})
	// Other services keep the 20 below a third of the registry, so that it is the service's own half that holds them.
	big := w.fleet(30, "big")
	w.fleet(10, "b1", "b2", "b3", "b4", "b5")
	lone := w.fleet(1, "lone")[0]
	dead := w.join(rig.Spec{Service: "b1", ID: "dies"})
	w.topology(10*time.Second, "all are published", has(11, "b1"))
	w.quiet()

	acked := big[0].Acknowledged()
	for _, i := range big[:20] {
		i.Network.Cut()
	}
	cut := time.Now()
	// The guard needs to see them overdue before the lone one and the dead one are judged with them around: in production terms
	// all three things happen in the same minute.
	lone.Network.Cut()
	dead.Crash()
	gone := w.topology(times.Stale+4*time.Second+times.Slack, "the dead instance of another service is gone", func(s rig.Seen) error {
		if address(s, "b1", "dies") != "" {
			return errNotYet
		}
		return nil
	})
	t.Logf("the other service's dead instance was gone after %v", gone.Read.Sub(cut).Round(time.Millisecond))
	loneGone := w.topology(times.Stale+4*time.Second+times.Slack, "the lone instance is stale", has(0, "lone"))
	t.Logf("the lone instance was gone after %v", loneGone.Read.Sub(cut).Round(time.Millisecond))
	w.until(times.Stale+times.Slack, "the 20 are held as unproven", func() error {
		counts, err := w.Livenesses(w.ctx, "big")
		if err == nil && (counts["unproven"] != 20 || counts["live"] != 10) {
			err = fmt.Errorf("livenesses of big: %v", counts)
		}
		return err
	})
	l := w.load(200, "big")
	time.Sleep(max(3*time.Second, time.Until(cut.Add(times.Cut)))) // the cut itself
	during := l.clean(200)
	if n := big[0].Acknowledged(); n > acked+1 {
		t.Errorf("%s got %d beats through the cut network", big[0].Name, n-acked)
	}
	if silent := during.Silent(names(big)); len(silent) > 0 {
		t.Errorf("%d of 30 got no traffic while 20 were cut off: %v", len(silent), silent)
	}
	for _, v := range w.Topology.Versions() {
		if v.Read.After(cut) && len(ids(v, "big")) != 30 {
			t.Errorf("version %d (%s) has %d instances of big, want 30", v.Version, v.Cause, len(ids(v, "big")))
		}
	}
	for _, i := range big[:20] {
		i.Network.Mend()
	}
	lone.Network.Mend()
	w.until(times.Recover+times.Beat, "all 30 are live again", func() error {
		counts, err := w.Livenesses(w.ctx, "big")
		if err == nil && counts["live"] != 30 {
			err = fmt.Errorf("livenesses of big: %v", counts)
		}
		return err
	})
	w.topology(times.Recover+times.Beat, "the lone instance is back", has(1, "lone"))
}

func names(list []*rig.Instance) []string {
	out := make([]string, len(list))
	for n, i := range list {
		out[n] = i.Name
	}
	return out
}
