package e2e

import (
	"errors"
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
	fences := 0
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
		fenced, err := first.Metric(w.ctx, "upstrand_listener_fenced_total")
		w.ok(err)
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
		// Kafka must not be able to tell it that its partitions are another's now: only the database's fence is left.
		w.ok(w.Broker.Pause())
		w.ok(first.Resume())
		// It may also find that its membership can't be good any more, by its own clock, before it tries.
		w.until(times.Session+10*time.Second, "the woken listener has tried to apply what it held, or dropped it", func() error {
			n, err := first.Metric(w.ctx, "upstrand_listener_fenced_total")
			if err == nil && n > fenced {
				fences++
				return nil
			}
			owned, err2 := first.Metric(w.ctx, "upstrand_listener_owned_partitions")
			if err == nil && err2 == nil && owned == 0 {
				return nil
			}
			return errors.Join(errNotYet, err, err2)
		})
		w.ok(w.Broker.Resume())
		i := w.shown(5*time.Second, "plain", "one", weight(base+1))
		if i.Revision != changed {
			t.Errorf("round %d: the woken listener changed the instance: revision %d, want %d", round, i.Revision, changed)
		}
		w.ok(first.AwaitReady(w.ctx, times.Session*4+20*time.Second))
		w.beat(plainBeat(base + 2))
		w.shown(10*time.Second, "plain", "one", weight(base+2))
		w.ok(second.Kill())
	}
	t.Logf("the fence held %d times", fences)
	if fences == 0 && times.Name == "scaled" {
		t.Error("the woken listener never came to the fence: this test has shown nothing")
	}
}

// silence is what a database bears of a process in the middle of a transaction. The leader may be stopped in the one that
// inserts a version, which holds the lease's row; no other call about the lease holds it over a round trip. A file of SQLite
// has nobody who would end that.
const silence = 5 * time.Second

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
		w.topology(3*times.Lease+silence+times.Slack*2, "another leads", func(s rig.Seen) error {
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
		// The database must not be able to tell it that the lease is another's now: only its own clock is left.
		w.ok(w.Database.Stop(w.ctx))
		w.ok(first.Resume())
		w.until(10*time.Second, "the woken leader knows that it has lost the lead", func() error {
			leads, err := first.Metric(w.ctx, "upstrand_confgen_leader")
			if err == nil && leads != 0 {
				err = errNotYet
			}
			return err
		})
		time.Sleep(2 * times.Commit) // its next commit would have been due
		w.ok(w.Database.Start(w.ctx))
		w.ok(first.AwaitReady(w.ctx, 20*time.Second))
		commits, _ := w.Topology.Commits()
		w.until(10*times.Commit+times.Recover, "a leader commits on", func() error {
			if n, _ := w.Topology.Commits(); n < commits+2 {
				return errNotYet
			}
			return nil
		})
		// With the database away for longer than a lease either of them may lead now, in an epoch of its own.
		latest := *w.Topology.Latest()
		if latest.Version != after.Version || latest.Digest != after.Digest {
			t.Errorf("round %d: the woken leader led to version %d, want %d still", round, latest.Version, after.Version)
		}
		if n := w.Topology.Ignored() - ignored; n > 0 {
			t.Errorf("round %d: the woken leader wrote %d records", round, n)
		}
		w.agreed()
	}
}
