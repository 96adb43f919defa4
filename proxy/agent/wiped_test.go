package agent

import (
	"strings"
	"testing"
	"time"
)

// TestWipedTopic: the topic is made again, empty. The last good topology stays, an older one is not accepted, a newer
// one is, without a restart.
func TestWipedTopic(t *testing.T) {
	w := newWorld(t)
	w.epoch = 3
	for n := range 5 {
		w.publish(config("orders", n+1))
	}
	a := w.start(nil)
	a.sink.isAt(t, 5, 5)
	w.wipe()
	w.epoch, w.version = 1, 0
	w.publish(config("orders", 9)) // a leader that knows nothing of before
	eventually(t, "the older topology is reported", func() bool { return strings.Contains(a.Report()["last_error"], "older") })
	if a.sink.last().Version != 5 {
		t.Errorf("version %d in force", a.sink.last().Version)
	}
	if r := a.Report(); r["topology_epoch"] != "3" || r["topology_version"] != "5" {
		t.Errorf("the report must say what the leader has to rise above: %v", r)
	}
	w.epoch, w.version = 4, 5
	w.records = map[string][]byte{}
	w.publish(config("orders", 2))
	a.sink.isAt(t, 6, 2)
	eventually(t, "the error is gone", func() bool { return a.Report()["last_error"] == "" })
}

// TestWipedToAShorterLog: the place to read at lies beyond the new log's end.
func TestWipedToAShorterLog(t *testing.T) {
	w := newWorld(t)
	for n := range 30 {
		w.publish(config("orders", n+1))
	}
	a := w.start(nil)
	a.sink.isAt(t, 30, 30)
	w.wipe()
	w.epoch = 2
	w.publish(config("orders", 4))
	a.sink.isAt(t, 31, 4)
}

// TestWipedToALongerLog: the new log soon reaches beyond the place to read at, where it goes on as if nothing had
// happened, but for what stands before.
func TestWipedToALongerLog(t *testing.T) {
	w := newWorld(t)
	w.publish(config("orders", 1))
	a := w.start(func(c *Config) { c.Reread = time.Hour })
	a.sink.isAt(t, 1, 1)
	w.drop()
	eventually(t, "the agent saw that the topic is away", func() bool { return a.Report()["last_error"] != "" })
	w.create()
	w.records = map[string][]byte{}
	w.publish(config("orders", 3))
	for range 20 {
		w.produce(w.commit(nil)) // repeated, as a leader does
	}
	a.sink.isAt(t, 2, 3)
}
