package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

// The database is restored from an older copy while everything runs. Since the copy was made an instance has died and another
// service's instance has taken its address: nobody may be sent there for the old service. All agents go on with newer versions.
func TestDatabaseRestoredFromAnOlderCopy(t *testing.T) {
	t.Parallel()
	w := start(t, shape{proxies: 2})
	w.fleet(4, "shop", "cart")
	old := w.join(rig.Spec{Service: "shop", ID: "old"})
	w.topology(10*time.Second, "the old instance is published", has(5, "shop"))
	w.quiet()
	backup, err := w.Database.Backup(w.ctx)
	w.ok(err)

	old.Goodbye()
	old.Kill()
	w.topology(10*time.Second, "the old instance is gone", has(4, "shop"))
	heir := w.join(rig.Spec{Service: "cart", ID: "heir", At: old.Addr})
	w.topology(10*time.Second, "the heir has the address", func(s rig.Seen) error {
		if address(s, "cart", "heir") != old.Addr {
			return errNotYet
		}
		return nil
	})
	for n := range 3 { // versions that the copy knows nothing of
		w.join(rig.Spec{Service: "later", ID: fmt.Sprint(n)})
		w.topology(10*time.Second, "a later instance is published", has(n+1, "later"))
	}
	before := *w.Topology.Latest()
	mark := len(w.Topology.Versions())

	l := w.load(100, "shop", "cart")
	w.ok(w.Database.Restore(w.ctx, backup))
	restored := time.Now()
	w.normalWithin(times.Recover+times.Hold+times.Stale, restored)
	w.topology(times.Stale+times.Slack, "all is published that lives", func(s rig.Seen) error {
		if err := has(4, "shop")(s); err != nil {
			return err
		}
		if err := has(5, "cart")(s); err != nil {
			return err
		}
		return has(3, "later")(s)
	})
	// The load has looked at every answer: one of another service's instance is a failure.
	s := l.clean(100)
	if s.ByInstance[heir.Name] == 0 {
		t.Error("the heir served nothing")
	}
	for _, v := range w.Topology.Versions()[mark:] {
		if v.Version <= before.Version || v.Epoch <= before.Epoch {
			t.Errorf("version %d of epoch %d came after version %d of epoch %d", v.Version, v.Epoch, before.Version, before.Epoch)
		}
		if at := address(v, "shop", "old"); at != "" {
			t.Errorf("version %d (%s) has the dead instance at %s, which %s owns now", v.Version, v.Cause, at, heir.Name)
		}
		t.Logf("version %d, epoch %d: %s", v.Version, v.Epoch, v.Cause)
	}
	w.agreed()
}

// agreed waits until the registry has every proxy on the newest version with the same digest. Proxies tell it with their beats.
func (w *world) agreed() {
	w.t.Helper()
	limit := 2*times.Agent + 10*time.Second
	api, err := w.API()
	w.ok(err)
	w.until(limit, "every agent has the newest version", func() error {
		live := 0
		for a, err := range api.AllAgents(w.ctx, page()) {
			if err != nil {
				return err
			}
			if a.Instance.Liveness != "live" {
				continue
			}
			live++
			if a.State != "current" {
				return fmt.Errorf("%s is %s: version %v of %d, last error %q", a.Instance.ID, a.State, deref(a.Version), a.RegistryVersion, a.LastError)
			}
		}
		if live < len(w.proxies) {
			return fmt.Errorf("%d agents are live, want %d", live, len(w.proxies))
		}
		return nil
	})
}

func deref(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// topic_upstream_conf is deleted and made anew, empty, while everything runs.
func TestTopologyTopicWiped(t *testing.T) {
	t.Parallel()
	w := start(t, shape{proxies: 2, confgens: 2})
	all := w.fleet(5, "shop")
	before := *w.Topology.Latest()
	l := w.load(100, "shop")
	w.ok(w.Kafka.Recreate(w.ctx, rig.TopicUpstreamConf))
	w.Topology.Restart()
	wiped := time.Now()
	w.topology(times.Recover+times.Commit, "the content is published again", func(s rig.Seen) error {
		if s.Read.Before(wiped) {
			return errNotYet
		}
		return has(5, "shop")(s)
	})
	w.normalWithin(times.Recover+times.Commit, wiped)
	if s := l.clean(100); len(s.Silent(names(all))) > 0 {
		t.Errorf("without traffic: %v", s.Silent(names(all)))
	}
	if after := w.Topology.Latest(); after.Version < before.Version {
		t.Errorf("version %d came after %d", after.Version, before.Version)
	}
	w.agreed()
	// A proxy without any memory must find everything in the new topic.
	fresh := w.must(w.Proxy(w.ctx, "proxy-fresh"))
	w.ok(fresh.AwaitReady(w.ctx, 20*time.Second))
	w.until(5*time.Second, "a fresh proxy serves", func() error { _, err := w.get(fresh, "/shop"); return err })
}

// topic_heartbeat is deleted and made anew while everything runs: nobody is evicted, beats count again by themselves.
func TestHeartbeatTopicRecreated(t *testing.T) {
	t.Parallel()
	w := start(t, shape{listeners: 2, proxies: 2})
	all := w.fleet(5, "shop", "cart")
	w.quiet()
	mark := len(w.Topology.Versions())
	// More records than a new topic has soon, so that the offsets in the database lie beyond its end.
	end, err := w.Kafka.LogEnd(w.ctx, rig.TopicHeartbeat)
	w.ok(err)
	if end < 100 {
		t.Fatalf("the topic holds only %d records", end)
	}
	l := w.load(100, "shop", "cart")
	w.ok(w.Kafka.Recreate(w.ctx, rig.TopicHeartbeat))
	recreated := time.Now()
	w.normal(recreated)
	victim := all[0]
	victim.Crash()
	w.topology(times.Recover+times.Stale+times.Slack, "a death is noticed again", has(4, victim.Service))
	l.clean(100)
	for _, v := range w.Topology.Versions()[mark:] {
		for _, i := range all[1:] {
			if address(v, i.Service, i.ID) != i.Addr {
				t.Errorf("version %d (%s) lacks %s", v.Version, v.Cause, i.Name)
			}
		}
	}
	kinds, _, err := w.EventKinds(w.ctx, 0)
	w.ok(err)
	t.Logf("events: %v", kinds)
}
