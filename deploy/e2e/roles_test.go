package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

// kill -9 and restart of each role, one after another, under load: no request fails, no instance is evicted, and all is normal
// by itself afterwards.
func TestKillAndRestartOfEachRole(t *testing.T) {
	t.Parallel()
	w := start(t, shape{listeners: 2, confgens: 2, proxies: 2})
	all := w.fleet(10, "shop", "cart")
	before, mark := *w.Topology.Latest(), len(w.Topology.Versions())
	l := &load{Load: rig.StartLoad(100, "http://"+w.proxies[0].Traffic+"/shop", "http://"+w.proxies[0].Traffic+"/cart"), t: t}
	t.Cleanup(func() { l.Load.Stop() })
	restarts := 0
	for _, r := range append(append(append([]*rig.Role{}, w.listeners...), w.confgens...), w.registry, w.proxies[1]) {
		if t.Failed() {
			return
		}
		t.Logf("kill -9 of %s", r.Name)
		w.ok(r.Kill())
		w.ok(r.Start(w.ctx))
		w.normal(time.Now())
		restarts++
	}
	w.ok(w.Broker.Kill())
	w.ok(w.Broker.Start(w.ctx))
	w.normal(time.Now())
	w.ok(w.Database.Kill())
	w.ok(w.Database.Start(w.ctx))
	w.normal(time.Now())
	l.clean(100)
	for _, v := range w.Topology.Versions()[mark:] {
		for _, i := range all {
			if address(v, i.Service, i.ID) != i.Addr {
				t.Errorf("version %d (%s) lacks %s", v.Version, v.Cause, i.Name)
			}
		}
	}
	if n, most := len(w.Topology.Versions())-mark, 2*(restarts+2); n > most {
		t.Errorf("%d new versions since %d, want at most the %d of the probes", n, before.Version, most)
	}
}

// A standby takes over within 3 lease times after kill -9 of the leader.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	w := start(t, shape{confgens: 2})
	w.fleet(2, "shop")
	for range 2 {
		w.quiet()
		leader := w.leader()
		epoch, version := w.Topology.Latest().Epoch, w.Topology.Latest().Version
		killed := time.Now()
		w.ok(leader.Kill())
		seen := w.topology(3*times.Lease+times.Slack, "the standby commits in its own epoch", func(s rig.Seen) error {
			if s.Epoch <= epoch {
				return fmt.Errorf("epoch is still %d", s.Epoch)
			}
			return nil
		})
		took := time.Since(killed)
		t.Logf("%s took over %v after kill -9 of %s, lease %v", w.leader().Name, took.Round(time.Millisecond), leader.Name, times.Lease)
		if took > 3*times.Lease {
			t.Errorf("the standby took over after %v, want within 3 leases of %v", took, times.Lease)
		}
		if seen.Version != version {
			t.Errorf("the new leader made version %d of the content of version %d", seen.Version, version)
		}
		w.ok(leader.Start(w.ctx))
		w.ok(leader.AwaitReady(w.ctx, 10*time.Second))
	}
}

// Restart of a proxy with Kafka away: it serves the last good topology from its disk.
func TestProxyRestartWithKafkaAway(t *testing.T) {
	t.Parallel()
	w := start(t, shape{})
	all := w.fleet(5, "shop")
	p := w.proxies[0]
	// The file is written at most every 10 s, so it may hold an older topology until then; a clean stop must not be needed.
	w.until(15*time.Second, "the last good topology is on disk", func() error { return stateHas(w.Dir, p.Name, "shop", all) })
	w.ok(w.Broker.Kill())
	w.ok(p.Kill())
	began := time.Now()
	w.ok(p.Start(w.ctx))
	w.until(15*time.Second, "the proxy is ready without Kafka", func() error { return p.Ready(w.ctx) })
	t.Logf("ready %v after its start without Kafka", time.Since(began).Round(time.Millisecond))
	l := w.load(100, "shop")
	time.Sleep(3 * time.Second)
	if s := l.clean(100); len(s.Silent(names(all))) > 0 {
		t.Errorf("these got no traffic from the topology on disk: %v", s.Silent(names(all)))
	}
	if _, err := w.Kafka.LogEnd(w.ctx, rig.TopicHeartbeat); err == nil {
		t.Error("Kafka was not away")
	}
	w.ok(w.Broker.Start(w.ctx))
	w.normal(time.Now())
}
