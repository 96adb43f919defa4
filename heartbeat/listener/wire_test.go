package listener

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
)

const testTopic = "topic_heartbeat"

// broker is an embedded Kafka broker on a real socket.
type broker struct {
	*kfake.Cluster
	addr string
	dir  string
}

func startBroker(t testing.TB, dir string, port int) *broker {
	t.Helper()
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100 * time.Millisecond)}
	if port != 0 {
		opts = append(opts, kfake.Ports(port))
	}
	if dir != "" {
		opts = append(opts, kfake.DataDir(dir))
	}
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{Cluster: c, addr: c.ListenAddrs()[0], dir: dir}
	t.Cleanup(func() { b.Close() })
	return b
}

func (b *broker) create(t testing.TB, partitions int32) {
	t.Helper()
	if err := b.CreateTopic(testTopic, partitions, nil); err != nil {
		t.Fatal(err)
	}
}

// scaled is a config at a tenth of production's times and less.
func scaled(addr string, rec Recorder) Config {
	log := zerolog.Nop()
	if os.Getenv("LISTENER_TEST_LOG") != "" {
		log = zerolog.New(zerolog.NewConsoleWriter()).With().Timestamp().Logger()
	}
	return Config{
		Brokers: []string{addr}, Topic: testTopic, GroupID: "upstrand-listener", Recorder: rec, Logger: log,
		PulseInterval: 100 * time.Millisecond, FetchWait: 100 * time.Millisecond, ReadTimeout: time.Second, BatchTime: 10 * time.Millisecond,
		SessionTimeout: time.Second, HeartbeatInterval: 100 * time.Millisecond, RebalanceTimeout: 2 * time.Second,
		JoinBackoff: 100 * time.Millisecond, PartitionWatchInterval: 200 * time.Millisecond, CommitInterval: 100 * time.Millisecond,
		RetryMin: 20 * time.Millisecond, RetryMax: 200 * time.Millisecond, StopTimeout: 2 * time.Second,
	}
}

// running is a listener that runs.
type running struct {
	*Listener
	cancel context.CancelFunc
	done   chan error
	once   sync.Once
}

func startListener(t testing.TB, cfg Config) *running {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Listener: l, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- l.Run(ctx) }()
	t.Cleanup(func() { r.stop(t) })
	return r
}

func (r *running) stop(t testing.TB) {
	t.Helper()
	r.once.Do(func() {
		r.cancel()
		select {
		case err := <-r.done:
			if err != nil {
				t.Errorf("listener ended with %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("listener did not end")
		}
	})
}

// eventually waits until ok.
func eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// sender writes records, and remembers how many were acknowledged.
type sender struct {
	w *kafka.Writer
	n int64
}

func newSender(t testing.TB, addr string) *sender {
	tr := &kafka.Transport{MetadataTTL: 100 * time.Millisecond}
	s := &sender{w: &kafka.Writer{
		Addr: kafka.TCP(addr), Topic: testTopic, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll, Transport: tr,
		BatchTimeout: 5 * time.Millisecond, BatchSize: 1000, MaxAttempts: 20, WriteBackoffMin: 10 * time.Millisecond, WriteBackoffMax: 100 * time.Millisecond,
	}}
	t.Cleanup(func() { _ = s.w.Close(); tr.CloseIdleConnections() })
	return s
}

func beatMessage(i int, seq int64) kafka.Message {
	id := fmt.Sprintf("i%d", i)
	return kafka.Message{Key: []byte("orders/" + id), Value: fmt.Appendf(nil,
		`{"service":"orders","id":%q,"ip":"10.0.%d.%d","port":8080,"incarnation":1,"seq":%d,"zone":"a","interval":"1s"}`, id, i/250, i%250+1, seq)}
}

// beats sends one beat of each of n instances.
func (s *sender) beats(t testing.TB, n int) {
	t.Helper()
	s.n++
	msgs := make([]kafka.Message, n)
	for i := range msgs {
		msgs[i] = beatMessage(i, s.n)
	}
	s.write(t, msgs...)
}

func (s *sender) write(t testing.TB, msgs ...kafka.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.w.WriteMessages(ctx, msgs...); err != nil {
		t.Fatalf("write: %v", err)
	}
}

// all waits until n instances have seq in the registry.
func (f *fakeRegistry) all(t testing.TB, limit time.Duration, n int, seq int64) {
	t.Helper()
	eventually(t, limit, fmt.Sprintf("all %d instances at seq %d", n, seq), func() (ok bool) {
		f.look(func() {
			ok = true
			for i := range n {
				ok = ok && f.beats[fmt.Sprintf("orders/i%d", i)] == seq
			}
		})
		return ok
	})
}

// gapless fails unless each partition's offsets from 0 to where its stream stands were applied once each.
func (f *fakeRegistry) gapless(t testing.TB) (records int64) {
	t.Helper()
	f.look(func() {
		for part, row := range f.rows {
			for off := int64(0); off < row.next; off++ {
				if n := f.applied[part][off]; n != 1 {
					t.Errorf("partition %d offset %d was applied %d times", part, off, n)
				}
			}
			records += max(row.next, 0)
		}
	})
	return records
}

func TestListenerOnTheWire(t *testing.T) {
	b := startBroker(t, "", 0)
	b.create(t, 6)
	reg := newFakeRegistry()
	l := startListener(t, scaled(b.addr, reg))
	eventually(t, 5*time.Second, "ready", func() bool { return l.Ready() == nil })
	s := newSender(t, b.addr)
	for range 20 {
		s.beats(t, 100)
	}
	reg.all(t, 5*time.Second, 100, 20)
	eventually(t, 5*time.Second, "clocks run", func() bool {
		for p := range int32(6) {
			if reg.clock(p) < 300*time.Millisecond {
				return false
			}
		}
		return true
	})
	eventually(t, 5*time.Second, "offsets in Kafka for lag tools", func() bool {
		g := b.GroupInfo("upstrand-listener")
		return g != nil && committed(t, b.addr) >= 2000
	})
	if got := metricValue(l.met.owned); got != 6 {
		t.Errorf("owned: %v", got)
	}
	l.stop(t)
	if l.Ready() == nil {
		t.Error("ready after the end")
	}
	reg.gapless(t)
}

// committed is the sum of the group's offsets in Kafka.
func committed(t testing.TB, addr string) (sum int64) {
	t.Helper()
	tr := &kafka.Transport{}
	defer tr.CloseIdleConnections()
	c := &kafka.Client{Addr: kafka.TCP(addr), Transport: tr}
	res, err := c.OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{GroupID: "upstrand-listener", Topics: map[string][]int{testTopic: {0, 1, 2, 3, 4, 5}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range res.Topics[testTopic] {
		sum += max(p.CommittedOffset, 0)
	}
	return sum
}

// Members come, go and fall silent while six partitions get beats.
func TestRebalances(t *testing.T) {
	b := startBroker(t, "", 0)
	b.create(t, 6)
	reg := newFakeRegistry()
	s := newSender(t, b.addr)
	const n = 60
	members := []*running{startListener(t, scaled(b.addr, reg))}
	for round := range 8 {
		switch round {
		case 1, 2, 5:
			members = append(members, startListener(t, scaled(b.addr, reg)))
		case 3, 6:
			members[0].stop(t)
			members = members[1:]
		case 4: // killed: its connections are gone and it says no goodbye
			members[0].wires.cutAll()
			members[0].stop(t)
			members = members[1:]
		}
		for range 10 {
			s.beats(t, n)
		}
	}
	reg.all(t, 20*time.Second, n, s.n)
	for _, m := range members {
		eventually(t, 10*time.Second, "ready", func() bool { return m.Ready() == nil })
	}
	owned := 0.0
	for _, m := range members {
		owned += metricValue(m.met.owned)
	}
	if owned != 6 {
		t.Errorf("%v partitions are owned by %d members", owned, len(members))
	}
	for _, m := range members {
		m.stop(t)
	}
	if got := reg.gapless(t); got < int64(n)*s.n {
		t.Errorf("%d records applied, %d beats sent", got, int64(n)*s.n)
	}
}

func TestStandbyIsReady(t *testing.T) {
	b := startBroker(t, "", 0)
	b.create(t, 1)
	reg := newFakeRegistry()
	x, y := startListener(t, scaled(b.addr, reg)), startListener(t, scaled(b.addr, reg))
	eventually(t, 10*time.Second, "one owner, one standby, both ready", func() bool {
		return x.Ready() == nil && y.Ready() == nil && metricValue(x.met.owned)+metricValue(y.met.owned) == 1
	})
}

func TestTopicMissingThenCreatedThenRecreated(t *testing.T) {
	b := startBroker(t, "", 0)
	reg := newFakeRegistry()
	l := startListener(t, scaled(b.addr, reg))
	eventually(t, 5*time.Second, "a generation without a topic", func() bool { return metricValue(l.met.generations) >= 2 })
	before := metricValue(l.met.generations)
	time.Sleep(500 * time.Millisecond) // a rate is measured
	if n := metricValue(l.met.generations) - before; n > 12 {
		t.Errorf("%v generations in 500ms without a topic", n)
	}
	b.create(t, 2)
	s := newSender(t, b.addr)
	s.beats(t, 10)
	reg.all(t, 10*time.Second, 10, 1)
	for range 50 {
		s.beats(t, 10)
	}
	reg.all(t, 10*time.Second, 10, 51)

	if err := b.DeleteTopic(testTopic); err != nil {
		t.Fatal(err)
	}
	reg.look(func() {
		for p := range reg.applied {
			reg.applied[p] = map[int64]int{}
		}
	})
	b.create(t, 2)
	s.beats(t, 10)
	reg.all(t, 10*time.Second, 10, 52)
	reg.look(func() {
		anew := 0
		for _, e := range reg.events {
			if strings.Contains(e, "created anew") {
				anew++
			}
		}
		if anew != 2 {
			t.Errorf("events: %q", reg.events)
		}
	})
	l.stop(t)
	reg.gapless(t)
}

func TestRetentionPassedOurOffset(t *testing.T) {
	b := startBroker(t, "", 0)
	b.create(t, 1)
	reg := newFakeRegistry()
	l := startListener(t, scaled(b.addr, reg))
	s := newSender(t, b.addr)
	s.beats(t, 10)
	reg.all(t, 5*time.Second, 10, 1)
	l.stop(t)
	for range 20 {
		s.beats(t, 10)
	}
	end := b.PartitionInfo(testTopic, 0).HighWatermark
	if err := b.DeleteRecords(testTopic, 0, end-5); err != nil {
		t.Fatal(err)
	}
	startListener(t, scaled(b.addr, reg))
	eventually(t, 5*time.Second, "the records that are left", func() bool { return reg.next(0) >= end })
	reg.look(func() {
		if last := reg.events[len(reg.events)-1]; !strings.Contains(last, "retention") {
			t.Errorf("events: %q", reg.events)
		}
	})
}

func TestPartitionsAddedWhileRunning(t *testing.T) {
	b := startBroker(t, "", 0)
	b.create(t, 2)
	reg := newFakeRegistry()
	l := startListener(t, scaled(b.addr, reg))
	eventually(t, 5*time.Second, "ready", func() bool { return l.Ready() == nil })
	tr := &kafka.Transport{}
	defer tr.CloseIdleConnections()
	c := &kafka.Client{Addr: kafka.TCP(b.addr), Transport: tr}
	res, err := c.CreatePartitions(context.Background(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: testTopic, Count: 5}}})
	if err != nil || res.Errors[testTopic] != nil {
		t.Fatal(err, res)
	}
	eventually(t, 10*time.Second, "five partitions", func() bool { return metricValue(l.met.owned) == 5 && l.Ready() == nil })
	s := newSender(t, b.addr)
	s.beats(t, 100)
	reg.all(t, 5*time.Second, 100, 1)
	reg.look(func() {
		if got := fmt.Sprint(reg.adopted); !strings.HasSuffix(got, " 5]") || !strings.HasPrefix(got, "[2") {
			t.Errorf("adopted: %v", got)
		}
	})
	l.stop(t)
	reg.gapless(t)
}

func TestBrokerRestart(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, 0)
	b.create(t, 3)
	_, port, _ := net.SplitHostPort(b.addr)
	var p int
	fmt.Sscan(port, &p)
	reg := newFakeRegistry()
	l := startListener(t, scaled(b.addr, reg))
	s := newSender(t, b.addr)
	s.beats(t, 50)
	reg.all(t, 5*time.Second, 50, 1)
	for range 2 {
		b.Close()
		eventually(t, 5*time.Second, "notice", func() bool { return l.Ready() != nil })
		b = startBroker(t, dir, p)
		s.beats(t, 50)
		reg.all(t, 15*time.Second, 50, s.n)
		eventually(t, 10*time.Second, "ready", func() bool { return l.Ready() == nil })
	}
	l.stop(t)
	reg.gapless(t)
}
