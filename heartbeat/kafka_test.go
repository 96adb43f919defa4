package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// startBroker runs an embedded broker on loopback.
func startBroker(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

// tail reads the topic from its start with another client than the Sender's. The channel yields what is there.
func tail(t testing.TB, addrs []string) <-chan *kgo.Record {
	t.Helper()
	return tailTopic(t, addrs, DefaultTopic)
}

func tailTopic(t testing.TB, addrs []string, topic string) <-chan *kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	records := make(chan *kgo.Record, 1000)
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { records <- r })
		}
	})
	t.Cleanup(func() { cancel(); done.Wait(); client.Close() })
	return records
}

// next is the next record, decoded.
func next(t testing.TB, records <-chan *kgo.Record) (Beat, *kgo.Record) {
	t.Helper()
	select {
	case r := <-records:
		b, err := DecodeRecord(r.Key, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		return b, r
	case <-time.After(20 * time.Second):
		t.Fatal("no record within 20 s")
		return Beat{}, nil
	}
}

// until reads on until a record pleases.
func until(t testing.TB, records <-chan *kgo.Record, pleases func(Beat) bool) Beat {
	t.Helper()
	for {
		if b, _ := next(t, records); pleases(b) {
			return b
		}
	}
}

// runKafka runs a Sender against brokers; stop ends it and checks that the end was clean.
func runKafka(t testing.TB, cfg Config) (s *Sender, stop func()) {
	t.Helper()
	s, err := NewSender(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-result; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return s, stop
}

func kafkaConfig(addrs []string) Config {
	return Config{Brokers: addrs, Beat: Beat{Service: "orders", ID: "a7", IP: "10.0.0.7", Port: 8080, URL: "/orders/",
		Interval: Duration(MinInterval)}}
}

func TestWire(t *testing.T) {
	broker := startBroker(t, kfake.SeedTopics(6, DefaultTopic))
	acks := make(chan int16, 100)
	broker.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		acks <- req.(*kmsg.ProduceRequest).Acks
		return nil, nil, false
	})
	records := tail(t, broker.ListenAddrs())
	for i := range 8 {
		cfg := kafkaConfig(broker.ListenAddrs())
		cfg.Beat.ID = fmt.Sprint("i", i)
		_, stop := runKafka(t, cfg)
		first, r := next(t, records)
		if first.Seq != 1 || first.URL != "/orders/" || string(r.Key) != "orders/"+cfg.Beat.ID {
			t.Fatalf("first record: key %s, %+v", r.Key, first)
		}
		second, r2 := next(t, records)
		if second.Seq != 2 || r2.Partition != r.Partition {
			t.Errorf("second record in partition %d after %d: %+v", r2.Partition, r.Partition, second)
		}
		want := (&kafka.Hash{}).Balance(kafka.Message{Key: r.Key}, 0, 1, 2, 3, 4, 5)
		if int(r.Partition) != want {
			t.Errorf("%s is in partition %d, a kafka.Writer with Hash would take %d", r.Key, r.Partition, want)
		}
		stop()
		last := until(t, records, func(b Beat) bool { return b.Status == StatusLeaving })
		if last.Incarnation != first.Incarnation || last.Seq < 3 || last.IP != "10.0.0.7" {
			t.Errorf("goodbye %+v", last)
		}
	}
	select {
	case r := <-records:
		t.Errorf("a record after the goodbye: %s", r.Value)
	default:
	}
	for len(acks) > 0 {
		if a := <-acks; a != -1 {
			t.Errorf("acks=%d, want all", a)
		}
	}
}

func TestTopicThatComesLater(t *testing.T) {
	broker := startBroker(t)
	failed := make(chan error, 1000)
	cfg := kafkaConfig(broker.ListenAddrs())
	cfg.OnError = func(err error) { failed <- err }
	s, _ := runKafka(t, cfg)
	if err := <-failed; !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Errorf("without the topic: %v", err)
	}
	for range 3 {
		<-failed
	}
	if s.Ready() == nil {
		t.Error("ready without a topic")
	}
	if err := broker.CreateTopic(DefaultTopic, 3, nil); err != nil {
		t.Fatal(err)
	}
	if b, _ := next(t, tail(t, broker.ListenAddrs())); b.Seq < 4 {
		t.Errorf("first beat after %d errors has seq %d", 4, b.Seq)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// The broker goes away and comes back on its port, with its log. The newest beat is the first to arrive.
func TestBrokerRestart(t *testing.T) {
	port, dir := freePort(t), t.TempDir()
	open := func() *kfake.Cluster {
		broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(dir), kfake.SeedTopics(1, DefaultTopic))
		if err != nil {
			t.Fatal(err)
		}
		return broker
	}
	addrs := []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	broker := open()
	defer func() { broker.Close() }()
	sent := make(chan Beat, 1000)
	failed := make(chan error, 1000)
	cfg := kafkaConfig(addrs)
	cfg.OnSent = func(b Beat) { sent <- b }
	cfg.OnError = func(err error) { failed <- err }
	_, stop := runKafka(t, cfg)
	for range 3 {
		<-sent
	}
	broker.Close()
	for range 5 {
		<-failed
	}
	for len(sent) > 0 {
		<-sent
	}
	back := time.Now()
	broker = open()
	b := <-sent
	if took := time.Since(back); took > 5*time.Second {
		t.Errorf("beating again %v after the broker's return", took)
	}
	if b.SentAt.Before(back.Add(-time.Second)) /* one attempt may have been on its way */ || b.Seq < 8 {
		t.Errorf("first beat after the outage: seq %d of %v, the broker was back at %v", b.Seq, b.SentAt, back)
	}
	stop()
	records := tail(t, addrs)
	seq := int64(0)
	until(t, records, func(b Beat) bool {
		if b.Seq < seq {
			t.Errorf("seq %d after %d", b.Seq, seq)
		}
		seq = b.Seq
		return b.Status == StatusLeaving
	})
}

func TestLeaderMoves(t *testing.T) {
	broker := startBroker(t, kfake.NumBrokers(3), kfake.SeedTopics(1, DefaultTopic))
	sent := make(chan Beat, 1000)
	cfg := kafkaConfig(broker.ListenAddrs())
	cfg.OnSent = func(b Beat) { sent <- b }
	_, _ = runKafka(t, cfg)
	for range 3 {
		<-sent
		leader := broker.LeaderFor(DefaultTopic, 0)
		if err := broker.MoveTopicPartition(DefaultTopic, 0, (leader+1)%3); err != nil {
			t.Fatal(err)
		}
		moved := time.Now()
		for b := range sent {
			if b.SentAt.After(moved) {
				break
			}
		}
		if took := time.Since(moved); took > 5*time.Second {
			t.Errorf("beating again %v after the leader moved", took)
		}
	}
}

// A connection that dies without a word is given up after ProduceTimeout, and a new one is made.
func TestNetworkDiesSilently(t *testing.T) {
	broker := startBroker(t, kfake.SeedTopics(1, DefaultTopic))
	n := newNetwork(t, broker.ListenAddrs()[0])
	sent, failed := make(chan Beat, 1000), make(chan error, 1000)
	cfg := kafkaConfig(broker.ListenAddrs())
	cfg.Transport = &kafka.Transport{Dial: n.dial}
	cfg.ProduceTimeout = 300 * time.Millisecond
	cfg.OnSent = func(b Beat) { sent <- b }
	cfg.OnError = func(err error) { failed <- err }
	_, stop := runKafka(t, cfg)
	<-sent
	<-sent
	n.set(true)
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("cut off: %v", err)
	}
	<-failed
	for len(sent) > 0 {
		<-sent
	}
	n.set(false)
	healed := time.Now()
	for b := range sent {
		if b.SentAt.After(healed) {
			break
		}
	}
	if took := time.Since(healed); took > 5*time.Second {
		t.Errorf("beating again after %v", took)
	}
	// The goodbye gets through even when the connection has just died: half of its time is for a second one.
	n.set(true)
	n.set(false)
	stop()
	until(t, tail(t, broker.ListenAddrs()), func(b Beat) bool { return b.Status == StatusLeaving })
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestGoodbyeWithoutBroker(t *testing.T) {
	broker := startBroker(t, kfake.SeedTopics(1, DefaultTopic))
	sent := make(chan Beat, 1000)
	cfg := kafkaConfig(broker.ListenAddrs())
	cfg.GoodbyeTimeout = 400 * time.Millisecond
	cfg.OnSent = func(b Beat) { sent <- b }
	s, err := NewSender(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	<-sent
	broker.Close()
	from := time.Now()
	cancel()
	if err := <-result; err == nil || !strings.Contains(err.Error(), "goodbye") {
		t.Errorf("Run = %v", err)
	}
	if took := time.Since(from); took > 5*time.Second {
		t.Errorf("Run returned after %v", took)
	}
}

// A shared transport is used as it is, by all, and left open.
func TestSharedTransport(t *testing.T) {
	broker := startBroker(t, kfake.SeedTopics(6, DefaultTopic))
	var dials atomic.Int32
	shared := &kafka.Transport{Dial: func(ctx context.Context, netw, addr string) (net.Conn, error) {
		dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, netw, addr)
	}}
	defer shared.CloseIdleConnections()
	sent := make(chan Beat, 1000)
	var stops []func()
	for i := range 20 {
		cfg := kafkaConfig(broker.ListenAddrs())
		cfg.Beat.ID = fmt.Sprint("i", i)
		cfg.Beat.Interval = Duration(time.Second)
		cfg.Transport, cfg.ShareTransport = shared, true
		cfg.OnSent = func(b Beat) { sent <- b }
		_, stop := runKafka(t, cfg)
		stops = append(stops, stop)
	}
	for range 20 {
		<-sent
	}
	n := dials.Load()
	for _, stop := range stops {
		stop()
	}
	if after := dials.Load(); n >= 40 || after > n+3 {
		t.Errorf("20 senders made %d connections, %d at the end", n, after)
	}
}

// The Sender's own transport carries the settings of the one it is given.
func TestTransportSettings(t *testing.T) {
	broker := startBroker(t, kfake.SeedTopics(1, DefaultTopic), kfake.EnableSASL(), kfake.Superuser("PLAIN", "beat", "secret"))
	for password, want := range map[string]bool{"secret": true, "wrong": false} {
		outcome := make(chan error, 1000)
		cfg := kafkaConfig(broker.ListenAddrs())
		cfg.GoodbyeTimeout = 300 * time.Millisecond
		cfg.Transport = &kafka.Transport{SASL: plain.Mechanism{Username: "beat", Password: password}, ClientID: "orders"}
		cfg.OnSent = func(Beat) { outcome <- nil }
		cfg.OnError = func(err error) { outcome <- err }
		s, err := NewSender(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { result <- s.Run(ctx) }()
		err = <-outcome
		cancel()
		if goodbye := <-result; (err == nil) != want || (goodbye == nil) != want {
			t.Errorf("password %s: beat %v, goodbye %v", password, err, goodbye)
		}
		if err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("the password is in the error: %v", err)
		}
	}
}

func TestOutgoingIP(t *testing.T) {
	if ip, err := OutgoingIP(t.Context(), "127.0.0.1:9092"); err != nil || ip != "127.0.0.1" {
		t.Errorf("towards loopback: %s, %v", ip, err)
	}
	if ip, err := OutgoingIP(t.Context(), "no port"); err == nil {
		t.Errorf("towards nothing: %s", ip)
	}
}
