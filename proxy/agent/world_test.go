package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/upstrand/upstrand/confgen/topology"
)

// world is a broker and a leader that publishes to it: an embedded one, or with UPSTRAND_TEST_KAFKA=host:port a real one.
type world struct {
	t       *testing.T
	topic   string
	addr    string
	client  *kafka.Client
	trans   *kafka.Transport
	records map[string][]byte // live, as published last
	epoch   int64
	version int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, addr: os.Getenv("UPSTRAND_TEST_KAFKA"), topic: fmt.Sprintf("topic_upstream_conf_%d", time.Now().UnixNano()),
		trans: &kafka.Transport{MetadataTTL: 100 * time.Millisecond}, records: map[string][]byte{}, epoch: 1}
	if w.addr == "" {
		broker, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(broker.Close)
		w.addr = broker.ListenAddrs()[0]
	}
	w.client = &kafka.Client{Addr: kafka.TCP(w.addr), Transport: w.trans, Timeout: 5 * time.Second}
	w.create()
	t.Cleanup(func() {
		w.drop()
		w.trans.CloseIdleConnections()
	})
	return w
}

// create makes the topic. After a deletion, which a real broker ends in its own time, that may take a while.
func (w *world) create() {
	w.t.Helper()
	eventually(w.t, "the topic is made", func() bool {
		resp, err := w.client.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
			Topic: w.topic, NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}},
		}}})
		return err == nil && resp.Errors[w.topic] == nil
	})
}

func (w *world) drop() {
	w.t.Helper()
	resp, err := w.client.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: []string{w.topic}})
	if err != nil || resp.Errors[w.topic] != nil {
		w.t.Error(err, resp)
	}
}

// wipe deletes the topic and makes it again, empty.
func (w *world) wipe() {
	w.t.Helper()
	w.drop()
	w.create()
	w.records = map[string][]byte{}
}

// config is a service with so many instances.
func config(service string, instances int) *topology.Config {
	s := topology.Service{Name: service}
	for i := range instances {
		s.Instances = append(s.Instances, topology.Instance{ID: fmt.Sprint("i", i), Order: int64(i + 1), Incarnation: 1,
			Addr: fmt.Sprintf("10.%d.%d.%d:8080", i>>16&255, i>>8&255, i&255)})
	}
	return &topology.Config{
		Services:  []topology.Service{s},
		Upstreams: []topology.Upstream{{Name: service, Origin: topology.Derived, Directives: []topology.Directive{{"discover", service}}}},
		Routes:    []topology.Route{{Path: "/" + service, Origin: topology.Derived, Upstream: service}},
	}
}

func (w *world) header() []kafka.Header {
	return []kafka.Header{
		{Key: topology.HeaderEpoch, Value: []byte(strconv.FormatInt(w.epoch, 10))},
		{Key: topology.HeaderVersion, Value: []byte(strconv.FormatInt(w.version, 10))},
	}
}

// changes is what the next version writes, without its commit.
func (w *world) changes(c *topology.Config) []kafka.Record {
	w.t.Helper()
	all, err := topology.EncodeLike(c, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []kafka.Record
	live := map[string][]byte{}
	for _, r := range all {
		live[r.Key] = r.Value
		if string(w.records[r.Key]) != string(r.Value) {
			out = append(out, kafka.Record{Key: kafka.NewBytes([]byte(r.Key)), Value: kafka.NewBytes(r.Value), Headers: w.header()})
		}
	}
	for key := range w.records {
		if live[key] == nil {
			out = append(out, kafka.Record{Key: kafka.NewBytes([]byte(key)), Headers: w.header()})
		}
	}
	w.records = live
	return out
}

// commit is the commit record for what is live.
func (w *world) commit(spoil func(*topology.Commit)) kafka.Record {
	w.t.Helper()
	c := topology.Commit{Version: w.version, Epoch: w.epoch, Count: len(w.records), At: time.Now(), Cause: "test"}
	for k, v := range w.records {
		c.Digest.Add(k, v)
	}
	if spoil != nil {
		spoil(&c)
	}
	value, err := c.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	return kafka.Record{Key: kafka.NewBytes([]byte(topology.KeyCommit)), Value: kafka.NewBytes(value), Headers: w.header()}
}

func (w *world) produce(records ...kafka.Record) {
	w.t.Helper()
	again, err := rereadable(records)
	if err != nil {
		w.t.Fatal(err)
	}
	for range 50 { // a new topic has no leader at first
		if err = w.tryProduce(again()...); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatal(err)
}

// rereadable gives records as often as it is asked: keys and values are streams, of which an attempt that failed has read some.
func rereadable(records []kafka.Record) (again func() []kafka.Record, err error) {
	type text struct{ key, value []byte }
	texts := make([]text, len(records))
	for i, r := range records {
		key, keyErr := kafka.ReadAll(r.Key)
		value, valueErr := kafka.ReadAll(r.Value)
		if err := errors.Join(keyErr, valueErr); err != nil {
			return nil, err
		}
		texts[i] = text{key, value}
	}
	return func() []kafka.Record {
		out := slices.Clone(records)
		for i := range out {
			out[i].Key, out[i].Value = kafka.NewBytes(texts[i].key), kafka.NewBytes(texts[i].value)
		}
		return out
	}, nil
}

func (w *world) tryProduce(records ...kafka.Record) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	resp, err := w.client.Produce(ctx, &kafka.ProduceRequest{Topic: w.topic, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(records...)})
	if err == nil {
		err = resp.Error
	}
	return err
}

// publish makes c the next version.
func (w *world) publish(c *topology.Config) {
	w.t.Helper()
	w.version++
	w.produce(append(w.changes(c), w.commit(nil))...)
}

// sink is an Applier that remembers.
type sink struct {
	mu      sync.Mutex
	applied []*topology.Topology
	at      []time.Time
	refuse  error
}

func (s *sink) Apply(t *topology.Topology) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return s.refuse
	}
	s.applied = append(s.applied, t)
	s.at = append(s.at, time.Now())
	return nil
}

func (s *sink) count() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.applied) }

func (s *sink) last() *topology.Topology {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.applied) == 0 {
		return nil
	}
	return s.applied[len(s.applied)-1]
}

// isAt waits until a version with so many instances is in force.
func (s *sink) isAt(t *testing.T, version int64, instances int) {
	t.Helper()
	eventually(t, fmt.Sprintf("version %d in force", version), func() bool {
		last := s.last()
		return last != nil && last.Version == version && len(last.Config.Services[0].Instances) == instances
	})
}

// running is an agent that runs.
type running struct {
	*Agent
	sink *sink
	stop func()
}

// start runs an agent with times scaled down. Stop waits for its end.
func (w *world) start(set func(*Config)) *running {
	w.t.Helper()
	s := &sink{}
	c := Config{Brokers: []string{w.addr}, Topic: w.topic, Applier: s, TopicWait: 300 * time.Millisecond, MaxWait: 50 * time.Millisecond,
		Reread: 200 * time.Millisecond, Jitter: 20 * time.Millisecond, SaveEvery: 50 * time.Millisecond, RetryMax: 100 * time.Millisecond, Timeout: 2 * time.Second,
		Logger: zerolog.New(zerolog.NewTestWriter(w.t)).Level(zerolog.ErrorLevel)}
	if set != nil {
		set(&c)
	}
	a, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var once sync.Once
	r := &running{Agent: a, sink: s}
	r.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.t.Errorf("run: %v", err)
			}
		})
	}
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Log("the agent's report: ", a.Report())
		}
		r.stop()
	})
	return r
}

func stateFile(t *testing.T) string { return filepath.Join(t.TempDir(), "topology") }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// during makes sure that something stays so for a while.
func during(t *testing.T, what string, d time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !ok() {
			t.Fatalf("no longer so: %s", what)
		}
	}
}

var errRefused = errors.New("no such topology here")
