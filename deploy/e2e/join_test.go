package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
	"github.com/upstrand/upstrand/heartbeat"
)

// First beat of a new instance → its first served request: p99 below 1 s over 50 joins. Half of them are the first instance
// of a new service with a route of its own, half join a service under load. It runs alone: it measures time.
func TestJoinToFirstRequest(t *testing.T) {
	w := start(t, shape{})
	w.fleet(3, "shop")
	l := w.load(200, "shop")
	var took []time.Duration
	for n := range 50 {
		spec := rig.Spec{Service: "shop", ID: fmt.Sprintf("late-%d", n)}
		if n%2 == 0 {
			spec = rig.Spec{Service: fmt.Sprintf("new-%d", n), ID: "only"}
		}
		i := w.join(spec)
		ctx := w.ctx
		for i.Served() == 0 {
			if ctx.Err() != nil || time.Since(i.Started()) > 10*time.Second {
				t.Fatalf("join %d (%s) was not served within 10 s; sender's errors: %v", n, i.Name, i.Errors())
			}
			if spec.Service == "shop" {
				time.Sleep(time.Millisecond) // the load brings the request
			} else if _, err := w.get(w.proxies[0], "/"+spec.Service); err != nil {
				time.Sleep(5 * time.Millisecond)
			}
		}
		took = append(took, i.LastServed().Sub(i.Started()))
		if spec.Service == "shop" {
			i.Leave(2 * time.Second)
		}
	}
	l.clean(200)
	slices.Sort(took)
	t.Logf("first beat to first served request over %d joins: p50 %v, p90 %v, p99 %v, max %v", len(took), took[25], took[45], took[49], took[49])
	if took[49] > time.Second {
		t.Errorf("p99 is %v, want below 1 s", took[49])
	}
}

// A changed weight in a beat is in force on the proxies within 1 s.
func TestChangedWeightIsInForceWithinASecond(t *testing.T) {
	w := start(t, shape{proxies: 2})
	all := w.fleet(2, "shop")
	changed := all[0]
	for _, weight := range []int{9, 2} {
		at := time.Now()
		w.ok(changed.Sender.Update(func(b *heartbeat.Beat) { b.Weight = weight }))
		for _, p := range w.proxies {
			// In any window of weight+1 requests the changed one gets weight and the other one: so nginx's rotation has it once
			// the new weights have settled.
			window := 3 * (weight + 1)
			for {
				hits := 0
				begun := time.Now()
				for range window {
					name, err := w.get(p, "/shop")
					w.ok(err)
					if name == changed.Name {
						hits++
					}
				}
				if hits == 3*weight {
					t.Logf("weight %d in force on %s within %v", weight, p.Name, begun.Sub(at).Round(time.Millisecond))
					break
				}
				if begun.Sub(at) > time.Second {
					t.Fatalf("%v after the beat %s gives %d of %d requests to the one of weight %d", begun.Sub(at), p.Name, hits, window, weight)
				}
			}
		}
		w.topology(time.Second, "the weight is published", func(s rig.Seen) error {
			if i, _ := s.Instance("shop", changed.ID); i.Weight != weight {
				return errors.New("published weight is another")
			}
			return nil
		})
	}
}

// Goodbye under 200 requests/s while five instances are replaced one after another: 0 failed requests; none to a leaver 1 s
// after its goodbye is on Kafka.
func TestReplacingInstancesUnderLoad(t *testing.T) {
	t.Parallel()
	w := start(t, shape{proxies: 2})
	old := w.fleet(5, "shop")
	l := w.load(200, "shop")
	for n, i := range old {
		fresh := w.join(rig.Spec{Service: "shop", ID: fmt.Sprintf("fresh-%d", n)})
		w.until(5*time.Second, "the fresh instance is served", func() error {
			if fresh.Served() == 0 {
				return errNotYet
			}
			return nil
		})
		if i.Served() == 0 {
			t.Fatalf("%s never served anything before it left", i.Name)
		}
		gone := i.Goodbye()
		// Watched for longer than the promise, with the leaver still able to answer.
		time.Sleep(2 * time.Second)
		if last := i.LastServed(); last.Sub(gone) > time.Second {
			t.Errorf("%s got a request %v after its goodbye", i.Name, last.Sub(gone))
		} else {
			t.Logf("%s: last request %v after its goodbye", i.Name, last.Sub(gone).Round(time.Millisecond))
		}
		i.Shutdown()
	}
	w.topology(time.Second, "the topology holds the five fresh ones", has(5, "shop"))
	l.clean(200)
}

// kill -9 of an instance under load: 0 failed GETs; gone from the topology within stale limit + 2 s. The instances are
// processes of their own here, so the kill is a real one.
func TestKillOfAnInstanceUnderLoad(t *testing.T) {
	t.Parallel()
	w := start(t, shape{proxies: 2})
	w.fleet(3, "shop")
	victim, addr := w.selfInstance("shop", "victim")
	w.topology(10*time.Second, "the victim is published", func(s rig.Seen) error {
		if address(s, "shop", "victim") != addr {
			return errNotYet
		}
		return nil
	})
	l := w.load(200, "shop")
	w.until(5*time.Second, "the victim serves", func() error {
		if l.Now().ByInstance["shop/victim"] < 20 {
			return errNotYet
		}
		return nil
	})
	killed := time.Now()
	w.ok(victim.Kill())
	// The last beat can be as old as a beat's interval, so being gone earlier than stale limit minus interval would be too early.
	seen := w.topology(times.Stale+2*time.Second+times.Slack, "the victim is gone", has(3, "shop"))
	gone := seen.Read.Sub(killed)
	t.Logf("gone from the topology %v after kill -9", gone.Round(time.Millisecond))
	if gone > times.Stale+2*time.Second {
		t.Errorf("the victim was in the topology for %v, want at most %v", gone, times.Stale+2*time.Second)
	}
	if gone < times.Stale-times.Beat-times.Slack/4 {
		t.Errorf("the victim was gone after %v, before it could be stale", gone)
	}
	l.clean(200)
}
