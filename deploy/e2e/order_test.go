package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
	"github.com/upstrand/upstrand/registry/wire"
)

// fields of a beat whose backend is a real one.
func fields(b *rig.Backend, service, id string, incarnation int64) map[string]any {
	ip, port := split(b.Addr)
	return map[string]any{"service": service, "id": id, "ip": ip, "port": port, "url": "/" + service,
		"incarnation": incarnation, "seq": serial()}
}

func (w *world) backend(name, addr string) *rig.Backend {
	w.t.Helper()
	b, err := rig.NewBackend(name, addr)
	w.ok(err)
	w.t.Cleanup(b.Kill)
	return b
}

// Beats with a clock 60 s behind and one hour ahead: both stay live, their skew is shown, neither is immortal; a restart on a
// host whose clock stepped back is accepted.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	w := start(t, shape{})
	now := time.Now().UnixMilli()
	clock := func(off time.Duration) func() any {
		return func() any { return time.Now().Add(off).Format(time.RFC3339Nano) }
	}
	behind := fields(w.backend("skew/behind", ""), "skew", "behind", now-60_000)
	behind["sent_at"] = clock(-time.Minute)
	ahead := fields(w.backend("skew/ahead", ""), "skew", "ahead", now+3_600_000)
	ahead["sent_at"] = clock(time.Hour)
	b, a := w.beater(behind), w.beater(ahead)
	w.topology(10*time.Second, "both are published", has(2, "skew"))
	watched := time.Now()
	for time.Since(watched) < times.Stale+2*times.Beat {
		time.Sleep(times.Beat / 4)
		if n := len(ids(*w.Topology.Latest(), "skew")); n != 2 {
			t.Fatalf("%v after they joined the topology has %d of them", time.Since(watched), n)
		}
	}
	skew := func(want time.Duration) func(wire.Instance) error {
		return func(i wire.Instance) error {
			if err := liveness("live")(i); err != nil {
				return err
			}
			if i.SkewMS == nil {
				return fmt.Errorf("no skew is shown")
			}
			if d := time.Duration(*i.SkewMS*float64(time.Millisecond)) - want; d.Abs() > 2*time.Second {
				return fmt.Errorf("skew is %v ms, want about %v", *i.SkewMS, want)
			}
			return nil
		}
	}
	w.shown(2*times.Beat, "skew", "behind", skew(time.Minute))
	w.shown(2*times.Beat, "skew", "ahead", skew(-time.Hour))
	// Neither is immortal.
	b.stop()
	a.stop()
	stopped := time.Now()
	w.topology(times.Stale+2*time.Second+times.Slack, "both are gone", has(0, "skew"))
	t.Logf("both were gone %v after their last beat", time.Since(stopped).Round(time.Millisecond))
	w.shown(time.Second, "skew", "ahead", liveness("stale"))
	// The host of the one that was ahead has its clock set right: its next incarnation is an hour lower.
	back := fields(w.backend("skew/ahead", ""), "skew", "ahead", now)
	w.beater(back)
	joined := w.topology(5*time.Second, "the restart is accepted", has(1, "skew"))
	if want := fmt.Sprint(back["ip"], ":", back["port"]); address(joined, "skew", "ahead") != want {
		t.Errorf("it is published at %s, want %s", address(joined, "skew", "ahead"), want)
	}
}

// Replayed and reordered beats change nothing, a goodbye included.
func TestReplayedAndReorderedBeats(t *testing.T) {
	t.Parallel()
	w := start(t, shape{})
	at := func(id string, incarnation, seq, weight int, status string) map[string]any {
		return map[string]any{"service": "re", "id": id, "incarnation": incarnation, "seq": seq, "ip": "127.0.0.1", "port": 9000 + int(id[0]),
			"weight": weight, "status": status, "interval": "1m"}
	}
	history := []map[string]any{at("a", 1000, 1, 1, "up"), at("a", 1000, 2, 2, "up"), at("a", 1000, 3, 3, "draining"), at("a", 1000, 4, 4, "up"),
		at("b", 1000, 1, 1, "up"), at("b", 1000, 2, 1, "leaving"), at("c", 2000, 1, 7, "up")}
	w.beat(history...)
	w.topology(10*time.Second, "the first telling is published", func(s rig.Seen) error {
		list := ids(s, "re")
		if len(list) != 2 || list["a"].Weight != 4 || list["c"].Weight != 7 {
			return fmt.Errorf("instances are %v", list)
		}
		return nil
	})
	w.quiet()
	mark := len(w.Topology.Versions())
	// Replayed as a whole, backwards, and older incarnations while their holder lives.
	w.beat(history...)
	for i := len(history) - 1; i >= 0; i-- {
		w.beat(history[i])
	}
	w.beat(at("a", 999, 50, 9, "up"), at("c", 1000, 99, 9, "leaving"), at("b", 1000, 1, 1, "up"))
	// A last beat tells that all before it in its partition has been applied; each id is its own partition's.
	w.beat(at("a", 1000, 5, 5, "up"), at("c", 2000, 2, 8, "up"), at("b", 1001, 1, 6, "up"))
	w.topology(10*time.Second, "the last beats are published", func(s rig.Seen) error {
		list := ids(s, "re")
		if len(list) != 3 || list["a"].Weight != 5 || list["b"].Weight != 6 || list["c"].Weight != 8 {
			return fmt.Errorf("instances are %v", list)
		}
		return nil
	})
	for _, v := range w.Topology.Versions()[mark:] {
		for id, i := range ids(v, "re") {
			old, fresh := map[string]int{"a": 4, "b": 6, "c": 7}[id], map[string]int{"a": 5, "b": 6, "c": 8}[id]
			if i.Drain || (i.Weight != old && i.Weight != fresh) {
				t.Errorf("version %d (%s): a replayed beat got through to %s: %+v", v.Version, v.Cause, id, i)
			}
		}
		if list := ids(v, "re"); list["a"].ID == "" || list["c"].ID == "" {
			t.Errorf("version %d (%s) lacks a or c", v.Version, v.Cause)
		}
	}
}

// One id beats from two addresses: the higher incarnation holds it, the lower is ignored while the holder lives, and the topology
// does not flap between them.
func TestOneIDWithTwoAddresses(t *testing.T) {
	t.Parallel()
	w := start(t, shape{})
	low, high := w.backend("twin/x", ""), w.backend("twin/x", "")
	first := w.beater(fields(low, "twin", "x", 1000))
	w.topology(10*time.Second, "the first address is published", func(s rig.Seen) error {
		if address(s, "twin", "x") != low.Addr {
			return errNotYet
		}
		return nil
	})
	second := w.beater(fields(high, "twin", "x", 2000))
	seen := w.topology(5*time.Second, "the higher incarnation takes over", func(s rig.Seen) error {
		if address(s, "twin", "x") != high.Addr {
			return errNotYet
		}
		return nil
	})
	time.Sleep(times.Stale + times.Beat) // both beat on; nothing may happen
	if latest := w.Topology.Latest(); latest.Version != seen.Version {
		t.Errorf("version %d (%s) came while both were beating", latest.Version, latest.Cause)
	}
	// Once the holder is gone, the lower incarnation that still beats is accepted.
	second.stop()
	w.topology(times.Stale+2*time.Second+times.Slack, "the lower incarnation holds the id", func(s rig.Seen) error {
		if address(s, "twin", "x") != low.Addr {
			return errNotYet
		}
		return nil
	})
	first.stop()
}

// Two services beat with one address: the claim that stands later in the log wins, the older owner leaves routing at once, and gets
// the address back only when the new owner has been silent.
func TestOneAddressWithTwoServices(t *testing.T) {
	t.Parallel()
	w := start(t, shape{})
	shared := w.backend("new/n", "")
	other := w.backend("old/other", "")
	w.beater(fields(other, "old", "other", 1000))
	w.beater(fields(shared, "old", "o", 1000))
	w.topology(10*time.Second, "the first owner is published", has(2, "old"))
	newcomer := w.beater(fields(shared, "new", "n", 1000))
	w.topology(5*time.Second, "the later claim has the address alone", func(s rig.Seen) error {
		if address(s, "new", "n") != shared.Addr {
			return errNotYet
		}
		if at := address(s, "old", "o"); at != "" {
			return fmt.Errorf("the old owner is still published at %s", at)
		}
		return nil
	})
	w.shown(2*time.Second, "old", "o", liveness("superseded"))
	w.quiet()
	mark := w.Topology.Latest().Version
	time.Sleep(times.Stale)
	if latest := w.Topology.Latest(); latest.Version != mark {
		t.Errorf("version %d (%s) came while both were beating", latest.Version, latest.Cause)
	}
	// Both services were never published with the address at once.
	for _, v := range w.Topology.Versions() {
		if address(v, "old", "o") == shared.Addr && address(v, "new", "n") == shared.Addr {
			t.Errorf("version %d (%s) has the address twice", v.Version, v.Cause)
		}
	}
	newcomer.stop()
	silent := time.Now()
	w.topology(times.Stale+times.Beat+times.Slack, "the older owner, which still beats, has the address back", func(s rig.Seen) error {
		if address(s, "old", "o") != shared.Addr {
			return errNotYet
		}
		return nil
	})
	if took := time.Since(silent); took < times.Beat/2 {
		t.Errorf("the address went back after %v, before the new owner had missed a beat", took)
	}
}

func split(addr string) (string, int) {
	for i := len(addr) - 1; i >= 0; i-- {
		if addr[i] == ':' {
			port, _ := strconv.Atoi(addr[i+1:])
			return addr[:i], port
		}
	}
	return addr, 0
}
