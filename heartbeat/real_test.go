package heartbeat

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// What the embedded broker can't vouch for: a real broker takes what the Sender writes, answers for a topic that is not
// there yet, and rejects nothing.
func TestRealKafka(t *testing.T) {
	addr := os.Getenv("UPSTRAND_TEST_KAFKA")
	if addr == "" {
		t.Skip("needs a real broker: UPSTRAND_TEST_KAFKA=host:port")
	}
	topic := fmt.Sprintf("heartbeat_test_%d", time.Now().UnixNano())
	failed := make(chan error, 1000)
	cfg := kafkaConfig([]string{addr})
	cfg.Topic = topic
	cfg.OnError = func(err error) { failed <- err }
	s, stop := runKafka(t, cfg)
	for range 3 {
		t.Logf("before the topic is there: %v", <-failed)
	}
	admin := &kafka.Client{Addr: kafka.TCP(addr), Timeout: 10 * time.Second, Transport: &kafka.Transport{}}
	defer admin.Transport.(*kafka.Transport).CloseIdleConnections()
	res, err := admin.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 6, ReplicationFactor: 1}}})
	if err != nil || res.Errors[topic] != nil {
		t.Fatalf("create the topic: %v, %v", err, res)
	}
	defer admin.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	records := tailTopic(t, []string{addr}, topic)
	first, r := next(t, records)
	if want := (&kafka.Hash{}).Balance(kafka.Message{Key: r.Key}, 0, 1, 2, 3, 4, 5); int(r.Partition) != want {
		t.Errorf("partition %d, want %d", r.Partition, want)
	}
	if err := s.Update(func(b *Beat) { b.Weight = 7 }); err != nil {
		t.Fatal(err)
	}
	until(t, records, func(b Beat) bool { return b.Weight == 7 })
	stop()
	last := until(t, records, func(b Beat) bool { return b.Status == StatusLeaving })
	if st := s.Stats(); last.Incarnation != first.Incarnation || last.Seq != st.Sent+st.Failed {
		t.Errorf("goodbye %+v after %+v", last, st)
	}
}
