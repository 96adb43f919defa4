package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

var tenServices = []string{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9"}

// outage is a part of the system being away for times.Outage, under load, with 200 beating instances in ten services.
type outage struct {
	begin, end func(*world) error
	// during proves in the middle of the outage that the part is really away.
	during func(*world) error
	// dies is an instance that dies in the middle of the outage: the only real change.
	dies bool
}

func (o outage) run(t *testing.T) {
	t.Parallel()
	w := start(t, shape{proxies: 2, confgens: 1})
	all := w.fleet(20, tenServices...)
	w.quiet()
	before := *w.Topology.Latest()
	mark := len(w.Topology.Versions())
	l := w.load(200, tenServices...)
	w.ok(o.begin(w))
	half := time.Now().Add(times.Outage / 2)
	w.until(times.Outage/2, "the part is away", func() error { return o.during(w) })
	if o.dies {
		all[0].Crash()
	}
	time.Sleep(time.Until(half.Add(times.Outage / 2))) // the outage itself
	w.until(time.Second, "the part is still away", func() error { return o.during(w) })
	w.ok(o.end(w))
	ended := time.Now()
	w.normal(ended)
	if o.dies {
		w.topology(times.Stale+times.Slack, "the instance that died meanwhile is found", has(19, all[0].Service))
		t.Logf("the dead instance was gone %v after the outage", time.Since(ended).Round(time.Millisecond))
	}
	// What was about to be evicted would be by now: a whole stale limit passes under watch.
	time.Sleep(times.Stale + times.Pulse*5)
	s := l.clean(200)
	w.unharmed(before, mark, all, o.dies)
	for _, i := range all[1:] {
		if s.ByInstance[i.Name] == 0 {
			t.Errorf("%s answered nothing", i.Name)
		}
	}
}

// quiet waits until no version has come for two beats, so that what comes later has a cause of its own.
func (w *world) quiet() {
	w.t.Helper()
	w.until(4*times.Beat+20*time.Second, "the topology has settled", func() error {
		if age := time.Since(w.Topology.Latest().Read); age < 2*times.Beat {
			return fmt.Errorf("newest version is %v old", age)
		}
		return nil
	})
}

// normal waits until all is as it should be, within times.Recover of the end of an outage: every role is ready, no stream lags,
// commits are repeated, and a new instance is served by every proxy.
func (w *world) normal(since time.Time) {
	w.t.Helper()
	w.normalWithin(times.Recover, since)
}

func (w *world) normalWithin(limit time.Duration, since time.Time) {
	w.t.Helper()
	left := func() time.Duration { return max(time.Second, time.Until(since.Add(limit))) }
	for _, r := range w.Roles() {
		if r.Alive() {
			w.until(left(), r.Name+" is ready again", func() error { return r.Ready(w.ctx) })
		}
	}
	w.until(left(), "no stream lags", func() error {
		api, err := w.API()
		if err != nil {
			return err
		}
		list, err := api.Streams(w.ctx)
		if err != nil {
			return err
		}
		if len(list.Streams) == 0 {
			return fmt.Errorf("no streams")
		}
		for _, s := range list.Streams {
			if s.Lag == nil || *s.Lag > 50 {
				return fmt.Errorf("partition %d lags by %v records", s.Partition, s.Lag)
			}
		}
		return nil
	})
	probe := w.join(rig.Spec{Service: "probe", ID: fmt.Sprintf("p%d", time.Now().UnixNano())})
	w.served(left(), "/probe")
	w.t.Logf("all is normal after %v", time.Since(since).Round(time.Millisecond))
	probe.Goodbye()
	w.topology(left(), "the probe is gone again", has(0, "probe"))
}

// unharmed checks every version since mark: no instance but the dead one ever left, and nothing but real changes made a
// version. The probe of normal makes two: its coming and its going.
func (w *world) unharmed(before rig.Seen, mark int, all []*rig.Instance, dies bool) {
	w.t.Helper()
	allowed := 2
	if dies {
		allowed++
	}
	versions := w.Topology.Versions()[mark:]
	for _, v := range versions {
		for n, i := range all {
			if dies && n == 0 {
				continue
			}
			if got := address(v, i.Service, i.ID); got != i.Addr {
				w.t.Errorf("version %d (%s) has %s at %q, want %s; its sender: %+v, errors %v", v.Version, v.Cause, i.Name, got, i.Addr, i.Sender.Stats(), i.Errors())
			}
		}
		w.t.Logf("version %d, epoch %d: %s", v.Version, v.Epoch, v.Cause)
	}
	if len(versions) > allowed {
		w.t.Errorf("%d new versions since version %d, want at most %d", len(versions), before.Version, allowed)
	}
	counts, err := w.Livenesses(w.ctx, "")
	w.ok(err)
	want := len(all)
	if dies {
		want--
	}
	if counts["live"] != want {
		w.t.Errorf("livenesses are %v, want %d live", counts, want)
	}
	for _, p := range w.Topology.Problems() {
		w.t.Errorf("an agent could not have used the topic: %v", p)
	}
}

// Kafka stopped under load with 200 beating instances.
func TestKafkaOutage(t *testing.T) {
	outage{
		begin: func(w *world) error { return w.Broker.Stop(w.ctx) },
		during: func(w *world) error {
			if _, err := w.Kafka.LogEnd(w.ctx, rig.TopicHeartbeat); err == nil {
				return fmt.Errorf("Kafka still answers")
			}
			return nil
		},
		end: func(w *world) error { return w.Broker.Start(w.ctx) },
	}.run(t)
}

// The database stopped under load with 200 beating instances. Embedded: the SQLite file refuses every write.
func TestDatabaseOutage(t *testing.T) {
	outage{
		begin:  func(w *world) error { return w.Database.Stop(w.ctx) },
		during: databaseAway,
		end:    func(w *world) error { return w.Database.Start(w.ctx) },
	}.run(t)
}

// The database hangs: connections stay, nothing answers.
func TestDatabaseHangs(t *testing.T) {
	outage{
		begin:  func(w *world) error { return w.Database.Pause() },
		during: databaseAway,
		end:    func(w *world) error { return w.Database.Resume() },
	}.run(t)
}

// databaseAway wants confgen, which needs the database to be ready, to say so.
func databaseAway(w *world) error {
	if w.confgens[0].Ready(w.ctx) == nil {
		return fmt.Errorf("confgen says that it is ready")
	}
	return nil
}

// The listener stopped (SIGSTOP) under load with 200 beating instances; one of these dies meanwhile and is found afterwards.
func TestListenerPause(t *testing.T) {
	pause := outage{
		begin:  func(w *world) error { return w.listeners[0].Pause() },
		during: func(w *world) error { return mustHang(w, w.listeners[0]) },
		end:    func(w *world) error { return w.listeners[0].Resume() },
		dies:   true,
	}
	pause.run(t)
}

// confgen stopped under load with 200 beating instances.
func TestConfgenPause(t *testing.T) {
	outage{
		begin:  func(w *world) error { return w.confgens[0].Pause() },
		during: func(w *world) error { return mustHang(w, w.confgens[0]) },
		end:    func(w *world) error { return w.confgens[0].Resume() },
	}.run(t)
}

func mustHang(w *world, r *rig.Role) error {
	if r.Ready(w.ctx) == nil {
		return fmt.Errorf("%s still answers", r.Name)
	}
	return nil
}
