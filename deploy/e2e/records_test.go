package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/deploy/rig"
	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry/client"
)

func page() client.Page { return client.Page{} }

// badRecords are values by the reason for which they must be refused.
var badRecords = map[heartbeat.Reason]string{
	heartbeat.Empty:          "",
	heartbeat.TooLarge:       `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"meta":{"a":"` + strings.Repeat("x", heartbeat.MaxRecord) + `"}}`,
	heartbeat.NotUTF8:        "{\"service\":\"b\xff\xfed\",\"id\":\"x\",\"ip\":\"127.0.0.1\",\"port\":1}",
	heartbeat.NotJSON:        `{"service":"bad","id":"x","ip":`,
	heartbeat.NotObject:      `["service","bad"]`,
	heartbeat.DuplicateField: `{"service":"bad","service":"bad","id":"x","ip":"127.0.0.1","port":1}`,
	heartbeat.UnknownField:   `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"colour":"red"}`,
	heartbeat.BadType:        `{"service":"bad","id":"x","ip":"127.0.0.1","port":"one"}`,
	heartbeat.MissingField:   `{"service":"bad","id":"x","port":1}`,
	heartbeat.BadService:     `{"service":"Bad Service","id":"x","ip":"127.0.0.1","port":1}`,
	heartbeat.BadID:          `{"service":"bad","id":"x/y","ip":"127.0.0.1","port":1}`,
	heartbeat.BadIncarnation: `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"incarnation":-1,"seq":1}`,
	heartbeat.BadSeq:         `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"incarnation":1,"seq":-1}`,
	heartbeat.BadSentAt:      `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"sent_at":"yesterday"}`,
	heartbeat.BadScheme:      `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"scheme":"ftp"}`,
	heartbeat.BadIP:          `{"service":"bad","id":"x","ip":"300.0.0.1","port":1}`,
	heartbeat.BadPort:        `{"service":"bad","id":"x","ip":"127.0.0.1","port":70000}`,
	heartbeat.BadURL:         `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"url":"no-slash"}`,
	heartbeat.BadStatus:      `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"status":"asleep"}`,
	heartbeat.BadWeight:      `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"weight":-3}`,
	heartbeat.BadInterval:    `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"interval":"1000h"}`,
	heartbeat.BadZone:        `{"service":"bad","id":"x","ip":"127.0.0.1","port":1,"zone":"a b"}`,
}

// 10,000 bad records of 20 kinds and more between good ones: all are counted by reason, all good ones are applied, nothing
// restarts.
func TestBadRecordsBetweenGoodOnes(t *testing.T) {
	t.Parallel()
	w := start(t, shape{})
	w.fleet(2, "shop")
	pid := w.listeners[0].Pid()
	const good = 500
	perKind := (10_000 + len(badRecords) - 1) / len(badRecords)
	var kinds []heartbeat.Reason
	for reason := range badRecords {
		kinds = append(kinds, reason)
	}
	if len(kinds) < 20 {
		t.Fatalf("%d kinds, want at least 20", len(kinds))
	}
	var msgs []kafka.Message
	for n := range perKind * len(kinds) {
		if n%(perKind*len(kinds)/good) == 0 && n/(perKind*len(kinds)/good) < good {
			id := fmt.Sprintf("g%03d", n/(perKind*len(kinds)/good))
			msgs = append(msgs, kafka.Message{Key: []byte("good/" + id),
				Value: fmt.Appendf(nil, `{"service":"good","id":"%s","ip":"127.1.0.1","port":%d,"interval":"1m"}`, id, 1000+n/20)})
		}
		// Without a key the balancer spreads them over all partitions.
		msgs = append(msgs, kafka.Message{Value: []byte(badRecords[kinds[n%len(kinds)]])})
	}
	for len(msgs) > 0 { // in calls of a bounded size
		n := min(len(msgs), 500)
		w.ok(w.Kafka.Produce(w.ctx, rig.TopicHeartbeat, msgs[:n]...))
		msgs = msgs[n:]
	}
	w.topology(60*time.Second, "all good ones are applied", has(good, "good"))
	api, err := w.API()
	w.ok(err)
	w.until(20*time.Second, "all bad ones are counted by reason", func() error {
		list, err := api.Rejected(w.ctx, client.RejectedQuery{})
		if err != nil {
			return err
		}
		got := map[string]int64{}
		for _, c := range list.Counts {
			got[c.Reason] = c.Count
		}
		for _, reason := range kinds {
			if got[string(reason)] != int64(perKind) {
				return fmt.Errorf("%s was counted %d times, want %d; all: %v", reason, got[string(reason)], perKind, got)
			}
		}
		if len(got) != len(kinds) {
			return fmt.Errorf("%d reasons were counted, want %d: %v", len(got), len(kinds), got)
		}
		if len(list.Rejected) == 0 {
			return fmt.Errorf("none is kept for reading")
		}
		return nil
	})
	if !w.listeners[0].Alive() || w.listeners[0].Pid() != pid {
		t.Error("the listener has ended")
	}
	w.ok(w.listeners[0].AwaitReady(w.ctx, 10*time.Second))
	if sum, err := w.listeners[0].Metric(w.ctx, "upstrand_listener_rejected_total"); err != nil || int(sum) != perKind*len(kinds) {
		t.Errorf("the listener's metric counts %v rejected records (%v), want %d", sum, err, perKind*len(kinds))
	}
	w.normal(time.Now())
}

// Steady beats of 200 instances: one version.
func TestSteadyBeatsMakeOneVersion(t *testing.T) {
	t.Parallel()
	w := start(t, shape{listeners: 2})
	all := w.fleet(20, tenServices...)
	w.quiet()
	before := *w.Topology.Latest()
	acks := 0
	for _, i := range all {
		acks += i.Acknowledged()
	}
	time.Sleep(times.Steady)
	if latest := w.Topology.Latest(); latest.Version != before.Version {
		t.Errorf("version %d (%s) came of steady beats", latest.Version, latest.Cause)
	}
	for _, i := range all {
		acks -= i.Acknowledged()
	}
	if want := int(float64(len(all)) * times.Steady.Seconds() / times.Beat.Seconds() * 0.8); -acks < want {
		t.Errorf("%d beats reached Kafka meanwhile, want at least %d", -acks, want)
	}
	api, err := w.API()
	w.ok(err)
	versions, err := api.Versions(w.ctx, page())
	w.ok(err)
	if len(versions.Versions) == 0 || versions.Versions[0].Version != before.Version {
		t.Errorf("the registry's newest version is not %d: %+v", before.Version, versions.Versions)
	}
}
