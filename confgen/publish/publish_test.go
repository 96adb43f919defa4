package publish

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/upstrand/upstrand/confgen/topology"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/segmentio/kafka-go.(*connPool).discover"),
		goleak.IgnoreAnyFunction("github.com/segmentio/kafka-go.(*conn).run"))
}

const (
	confTopic = "topic_upstream_conf"
	beatTopic = "topic_heartbeat"
)

// broker is an embedded broker with both topics.
func broker(t *testing.T, configs map[string]string) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	create(t, c, configs)
	if err := c.CreateTopic(beatTopic, 3, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func create(t *testing.T, c *kfake.Cluster, configs map[string]string) {
	t.Helper()
	if configs == nil {
		configs = map[string]string{"cleanup.policy": "compact", "max.message.bytes": strconv.Itoa(8 << 20)}
	}
	if err := c.CreateTopic(confTopic, 1, configs); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, c *kfake.Cluster, change ...func(*Config)) *Topic {
	t.Helper()
	transport := &kafka.Transport{}
	cfg := Config{Brokers: c.ListenAddrs(), Topic: confTopic, HeartbeatTopic: beatTopic, Transport: transport}
	for _, f := range change {
		f(&cfg)
	}
	topic, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = topic.Close()
		transport.CloseIdleConnections()
	})
	return topic
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func message(key, value string, epoch, version int64) topology.Message {
	m := topology.Message{Record: topology.Record{Key: key}, Pair: topology.Pair{Epoch: epoch, Version: version}}
	if value != "" {
		m.Value = []byte(value)
	}
	return m
}

func readAll(t *testing.T, topic *Topic, from int64) ([]topology.Message, topology.Extent) {
	t.Helper()
	var out []topology.Message
	extent, err := topic.Read(within(t, 10*time.Second), from, func(m topology.Message) { out = append(out, m) })
	if err != nil {
		t.Fatal(err)
	}
	return out, extent
}

func number(messages []topology.Message) []topology.Message {
	for i := range messages {
		messages[i].Offset = int64(i)
	}
	return messages
}

func TestWhatIsProducedIsRead(t *testing.T) {
	c := broker(t, nil)
	topic := open(t, c)
	if got, extent := readAll(t, topic, -1); len(got) != 0 || extent != (topology.Extent{}) {
		t.Errorf("an empty topic gives %v, %+v", got, extent)
	}
	sent := []topology.Message{
		message("service/a", `{"name":"a","instances":[]}`, 3, 7), message("service/b", "", 3, 7), message("commit", strings.Repeat("x", 10_000), 3, 7),
	}
	if err := topic.Produce(within(t, 10*time.Second), sent); err != nil {
		t.Fatal(err)
	}
	got, extent := readAll(t, topic, -1)
	if diff := cmp.Diff(number(sent), got); diff != "" || extent != (topology.Extent{Start: 0, End: 3}) {
		t.Errorf("extent %+v (-sent +read):\n%s", extent, diff)
	}
	if info := c.PartitionInfo(confTopic, 0); info.HighWatermark != 3 {
		t.Errorf("high watermark %d", info.HighWatermark)
	}
	// Following: nothing, then what is new.
	if got, extent := readAll(t, topic, extent.End); len(got) != 0 || extent.End != 3 {
		t.Errorf("nothing new gives %v, %+v", got, extent)
	}
	if err := topic.Produce(within(t, 10*time.Second), []topology.Message{message("commit", "y", 3, 8)}); err != nil {
		t.Fatal(err)
	}
	if got, extent := readAll(t, topic, 3); len(got) != 1 || got[0].Offset != 3 || got[0].Version != 8 || extent.End != 4 {
		t.Errorf("one new gives %v, %+v", got, extent)
	}
}

// TestOneBatchWhereItFits counts the produce requests.
func TestOneBatchWhereItFits(t *testing.T) {
	c := broker(t, nil)
	var requests int
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		requests++
		return nil, nil, false
	})
	send := func(topic *Topic, n, size int) (batches int) {
		t.Helper()
		var messages []topology.Message
		for i := range n {
			messages = append(messages, message(fmt.Sprintf("k%03d", i), strings.Repeat("v", size), 1, 1))
		}
		before := requests
		if err := topic.Produce(within(t, 20*time.Second), messages); err != nil {
			t.Fatal(err)
		}
		return requests - before
	}
	topic := open(t, c)
	if n := send(topic, 100, 30_000); n != 1 {
		t.Errorf("3 MB took %d batches", n)
	}
	small := open(t, c, func(cfg *Config) { cfg.BatchBytes = 100_000 })
	if n := send(small, 100, 30_000); n != 34 {
		t.Errorf("3 MB in batches of 100 kB took %d", n)
	}
	if n := send(small, 2, 200_000); n != 2 {
		t.Errorf("records above the batch size took %d batches", n)
	}
	got, _ := readAll(t, topic, 100)
	for i, m := range got[:100] {
		if m.Key != fmt.Sprintf("k%03d", i) {
			t.Fatalf("record %d is %s: the order is lost", i, m.Key)
		}
	}
}

// TestBrokerTakesLessThanExpected: the batch is halved until it fits, and the order stays.
func TestBrokerTakesLessThanExpected(t *testing.T) {
	c := broker(t, map[string]string{"max.message.bytes": "2000"})
	topic := open(t, c)
	var sent []topology.Message
	for i := range 20 {
		sent = append(sent, message(fmt.Sprintf("k%03d", i), strings.Repeat("v", 150), 1, 1))
	}
	if err := topic.Produce(within(t, 10*time.Second), sent); err != nil {
		t.Fatal(err)
	}
	got, _ := readAll(t, topic, -1)
	if diff := cmp.Diff(number(sent), got); diff != "" {
		t.Error(diff)
	}
	giant := message("k", strings.Repeat("v", 3000), 1, 1)
	if err := topic.Produce(within(t, 10*time.Second), []topology.Message{giant}); !errors.Is(err, kafka.MessageSizeTooLarge) {
		t.Errorf("a record that never fits: %v", err)
	}
}

// TestOneAttempt: a failed append is not tried again behind the caller's back, and what follows is not sent.
func TestOneAttempt(t *testing.T) {
	c := broker(t, nil)
	topic := open(t, c, func(cfg *Config) { cfg.BatchBytes = 1 })
	warm := []topology.Message{message("warm", "x", 1, 1)}
	if err := topic.Produce(within(t, 10*time.Second), warm); err != nil {
		t.Fatal(err)
	}
	requests := 0
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		requests++
		res := req.ResponseKind().(*kmsg.ProduceResponse)
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic = confTopic
		rt.TopicID = req.(*kmsg.ProduceRequest).Topics[0].TopicID
		rp := kmsg.NewProduceResponseTopicPartition()
		rp.ErrorCode = 19 // not enough replicas
		rt.Partitions = append(rt.Partitions, rp)
		res.Topics = append(res.Topics, rt)
		return res, nil, true
	})
	err := topic.Produce(within(t, 10*time.Second), []topology.Message{message("a", "x", 1, 2), message("commit", "x", 1, 2)})
	if !errors.Is(err, kafka.NotEnoughReplicas) {
		t.Errorf("error %v", err)
	}
	if requests != 1 {
		t.Errorf("%d requests", requests)
	}
}

func TestProduceGivesUpInTime(t *testing.T) {
	c := broker(t, nil)
	topic := open(t, c)
	if err := topic.Produce(within(t, 10*time.Second), []topology.Message{message("warm", "x", 1, 1)}); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	defer close(release)
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() { <-release })
		return nil, nil, false
	})
	start := time.Now()
	err := topic.Produce(within(t, 300*time.Millisecond), []topology.Message{message("late", "x", 1, 1)})
	if err == nil || time.Since(start) > 3*time.Second {
		t.Errorf("returned %v after %s", err, time.Since(start))
	}
}

func TestReadGivesUpInTime(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	topic, err := New(Config{Brokers: []string{silent.Addr().String()}, Topic: confTopic, HeartbeatTopic: beatTopic})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := topic.Read(within(t, 300*time.Millisecond), -1, func(topology.Message) {}); err == nil || time.Since(start) > 3*time.Second {
		t.Errorf("returned %v after %s", err, time.Since(start))
	}
}

// A broker that takes connections and says nothing must not keep the others from being asked; SASL has no deadline of its
// own.
func TestSilentBrokerIsPassedOver(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := broker(t, nil)
	topic := open(t, c, func(cfg *Config) { cfg.Brokers = append([]string{silent.Addr().String()}, cfg.Brokers...) })
	if _, err := topic.Read(within(t, 3*time.Second), -1, func(topology.Message) {}); err != nil {
		t.Fatal(err)
	}
	_ = topic.Close()
	start := time.Now()
	if _, err := topic.Read(within(t, 3*time.Second), -1, func(topology.Message) {}); err != nil || time.Since(start) > leastShare {
		t.Errorf("again: %v after %s", err, time.Since(start))
	}
	login := open(t, c, func(cfg *Config) {
		cfg.Brokers = []string{silent.Addr().String()}
		cfg.Dialer = &kafka.Dialer{SASLMechanism: plain.Mechanism{Username: "u", Password: "p"}}
	})
	done := make(chan error, 1)
	go func() {
		_, err := login.Read(within(t, 300*time.Millisecond), -1, func(topology.Message) {})
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("logged in at nobody")
		}
	case <-time.After(5 * time.Second):
		t.Error("waits for a login for ever")
	}
}

func TestTopicRecreatedAndWiped(t *testing.T) {
	c := broker(t, nil)
	topic := open(t, c)
	put := func(n int) {
		t.Helper()
		for i := range n {
			if err := topic.Produce(within(t, 10*time.Second), []topology.Message{message("commit", fmt.Sprint(i), 1, 1)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(5)
	if err := c.DeleteRecords(confTopic, 0, 5); err != nil {
		t.Fatal(err)
	}
	if got, extent := readAll(t, topic, 5); len(got) != 0 || extent != (topology.Extent{Start: 5, End: 5}) {
		t.Errorf("wiped: %v, %+v", got, extent)
	}
	if got, extent := readAll(t, topic, 2); len(got) != 0 || extent != (topology.Extent{Start: 5, End: 5}) {
		t.Errorf("wiped, from before its start: %v, %+v", got, extent)
	}
	if err := c.DeleteTopic(confTopic); err != nil {
		t.Fatal(err)
	}
	if _, err := topic.Read(within(t, 5*time.Second), 5, func(topology.Message) {}); err == nil {
		t.Error("a topic that is gone can be read")
	}
	create(t, c, nil)
	// The client may know the old topic for a moment.
	deadline := time.Now().Add(10 * time.Second)
	for {
		extent, err := topic.Read(within(t, 5*time.Second), 5, func(topology.Message) { t.Error("a record") })
		if err == nil {
			if extent != (topology.Extent{}) {
				t.Errorf("recreated: %+v", extent)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	put(2)
	if got, _ := readAll(t, topic, -1); len(got) != 2 {
		t.Errorf("recreated: %v", got)
	}
}

// TestCompactedTopic reads over the holes that compaction leaves, and past a log whose end is gone.
func TestCompactedTopic(t *testing.T) {
	c := broker(t, nil)
	topic := open(t, c)
	for i := range 200 {
		m := []topology.Message{message(fmt.Sprintf("k%d", i%7), fmt.Sprint(i), 1, int64(i)), message("commit", fmt.Sprint(i), 1, int64(i))}
		if err := topic.Produce(within(t, 20*time.Second), m); err != nil {
			t.Fatal(err)
		}
	}
	c.Compact()
	got, extent := readAll(t, topic, -1)
	if len(got) >= 400 || extent.End != 400 {
		t.Errorf("%d records, %+v", len(got), extent)
	}
	last := map[string]string{}
	for _, m := range got {
		last[m.Key] = string(m.Value)
	}
	for i := 193; i < 200; i++ {
		if last[fmt.Sprintf("k%d", i%7)] != fmt.Sprint(i) {
			t.Errorf("k%d is %s", i%7, last[fmt.Sprintf("k%d", i%7)])
		}
	}
	for from := int64(0); from < 400; from += 37 {
		if _, extent := readAll(t, topic, from); extent.End != 400 {
			t.Errorf("from %d: %+v", from, extent)
		}
	}
}

func TestForeignRecords(t *testing.T) {
	c := broker(t, nil)
	topic := open(t, c)
	w := &kafka.Writer{Addr: kafka.TCP(c.ListenAddrs()...), Topic: confTopic, BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll}
	err := w.WriteMessages(within(t, 10*time.Second),
		kafka.Message{Key: []byte("no headers"), Value: []byte("x")},
		kafka.Message{Key: []byte("bad headers"), Value: []byte("x"), Headers: []kafka.Header{{Key: "epoch", Value: []byte("-4")}, {Key: "version", Value: []byte("many")}}},
		kafka.Message{Key: []byte("beyond all counting"), Value: []byte("x"), Headers: []kafka.Header{{Key: "epoch", Value: []byte("9223372036854775807")}, {Key: "version", Value: []byte("9223372036854775807")}}},
		kafka.Message{Value: []byte("no key")})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := readAll(t, topic, -1)
	if len(got) != 4 {
		t.Fatalf("got %v", got)
	}
	for _, m := range got {
		if m.Pair != (topology.Pair{}) || m.Value == nil {
			t.Errorf("%+v", m)
		}
	}
	kafka.DefaultTransport.(*kafka.Transport).CloseIdleConnections()
}

func TestHeartbeatEnds(t *testing.T) {
	c := broker(t, nil)
	topic := open(t, c)
	w := &kafka.Writer{Addr: kafka.TCP(c.ListenAddrs()...), Topic: beatTopic, BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll,
		Balancer: kafka.BalancerFunc(func(m kafka.Message, p ...int) int { return int(m.Key[0] - '0') })}
	if err := w.WriteMessages(within(t, 10*time.Second), kafka.Message{Key: []byte("0")}, kafka.Message{Key: []byte("2")}, kafka.Message{Key: []byte("2")}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	kafka.DefaultTransport.(*kafka.Transport).CloseIdleConnections()
	ends, err := topic.HeartbeatEnds(within(t, 10*time.Second))
	if diff := cmp.Diff(map[int32]int64{0: 1, 1: 0, 2: 2}, ends); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	none := open(t, c, func(cfg *Config) { cfg.HeartbeatTopic = "nothing" })
	if ends, err := none.HeartbeatEnds(within(t, 10*time.Second)); err == nil {
		t.Errorf("a topic that is not there ends at %v", ends)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no brokers": {Topic: "a", HeartbeatTopic: "b"}, "no topic": {Brokers: []string{"x"}, HeartbeatTopic: "b"},
		"no heartbeat topic": {Brokers: []string{"x"}, Topic: "a"}, "negative batch": {Brokers: []string{"x"}, Topic: "a", HeartbeatTopic: "b", BatchBytes: -1},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
