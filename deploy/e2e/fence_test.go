package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
	"github.com/upstrand/upstrand/registry/wire"
)

// A listener is stopped with a fetched batch in its hands, another takes its partitions over and applies more; woken, the first
// must not apply its batch. The beats carry no incarnation and no seq, so only the fence keeps the old weight out.
func TestWokenListenerChangesNothing(t *testing.T) {
	t.Parallel()
	w := start(t, shape{})
	w.fleet(2, "shop")
	first := w.listeners[0]
	plainBeat := func(weight int) map[string]any {
		return map[string]any{"service": "plain", "id": "one", "ip": "127.0.0.1", "port": 9, "weight": weight, "interval": "1m"}
	}
	weight := func(want int) func(wire.Instance) error {
		return func(i wire.Instance) error {
			if i.Weight != want {
				return fmt.Errorf("weight is %d, want %d", i.Weight, want)
			}
			return nil
		}
	}
	w.beat(plainBeat(1))
	w.shown(10*time.Second, "plain", "one", weight(1))
	var second *rig.Role
	for round := range 3 {
		base := 10 * (round + 1)
		// With the database away the listener gets a batch and can't apply it.
		w.ok(w.Database.Stop(w.ctx))
		w.beat(plainBeat(base))
		w.until(10*time.Second, "the listener holds a batch that it can't apply", func() error {
			if first.Ready(w.ctx) == nil {
				return errNotYet
			}
			return nil
		})
		w.ok(first.Pause())
		w.ok(w.Database.Start(w.ctx))
		if second == nil {
			second = w.must(w.Listener(w.ctx, "listener-second"))
		} else {
			w.ok(second.Start(w.ctx))
		}
		w.shown(times.Session*4+times.Slack*4, "plain", "one", weight(base))
		w.beat(plainBeat(base + 1))
		w.shown(10*time.Second, "plain", "one", weight(base+1))
		changed := w.shown(time.Second, "plain", "one", weight(base+1)).Revision
		w.ok(first.Resume())
		w.ok(first.AwaitReady(w.ctx, times.Session*4+20*time.Second))
		// Ready again means that it has dropped what it held. A beat after that shows that the stream goes on from there.
		i := w.shown(5*time.Second, "plain", "one", weight(base+1))
		if i.Revision != changed {
			t.Errorf("round %d: the woken listener changed the instance: revision %d, want %d", round, i.Revision, changed)
		}
		w.beat(plainBeat(base + 2))
		w.shown(10*time.Second, "plain", "one", weight(base+2))
		w.ok(second.Kill())
	}
}

// The leading confgen is stopped, another takes the lead and publishes; woken, the first changes nothing on the topic.
func TestWokenLeaderChangesNothing(t *testing.T) {
	t.Parallel()
	w := start(t, shape{confgens: 2, proxies: 2})
	w.fleet(3, "shop")
	for round := range 3 {
		first := w.leader()
		epoch := w.Topology.Latest().Epoch
		// A change under way makes it likely that the leader stops between building and publishing.
		w.join(rig.Spec{Service: "churn", ID: fmt.Sprintf("a%d", round)})
		w.ok(first.Pause())
		w.topology(3*times.Lease+times.Slack*2, "another leads", func(s rig.Seen) error {
			if s.Epoch <= epoch {
				return fmt.Errorf("epoch is still %d", s.Epoch)
			}
			return nil
		})
		w.join(rig.Spec{Service: "churn", ID: fmt.Sprintf("b%d", round)})
		w.topology(5*time.Second, "the new leader publishes", has(2*(round+1), "churn"))
		w.quiet()
		after := *w.Topology.Latest()
		ignored := w.Topology.Ignored()
		w.ok(first.Resume())
		w.ok(first.AwaitReady(w.ctx, 20*time.Second))
		commits, _ := w.Topology.Commits()
		w.until(10*times.Commit, "the new leader commits on", func() error {
			if n, _ := w.Topology.Commits(); n < commits+2 {
				return errNotYet
			}
			return nil
		})
		latest := *w.Topology.Latest()
		if latest.Version != after.Version || latest.Epoch != after.Epoch || latest.Digest != after.Digest {
			t.Errorf("round %d: the woken leader led to version %d of epoch %d, want %d of %d", round, latest.Version, latest.Epoch, after.Version, after.Epoch)
		}
		if n := w.Topology.Ignored() - ignored; n > 0 {
			t.Logf("round %d: %d records of the woken leader came too late and were ignored", round, n)
		}
		if w.leader() == first {
			t.Errorf("round %d: the woken leader leads again without cause", round)
		}
		w.agreed(10 * time.Second)
	}
}
