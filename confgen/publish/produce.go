package publish

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/confgen/topology"
)

// compressFrom is the size of a batch in bytes from which on it is compressed.
const compressFrom = 4 << 10

// Produce appends the messages in order and returns once all are on all in-sync replicas. They go in one batch where
// they fit, else in several, the next only after the one before was acknowledged. Each is sent once. After an error any
// first part of the messages may be in the log, or get there still.
func (t *Topic) Produce(ctx context.Context, messages []topology.Message) error {
	for len(messages) > 0 {
		n := t.fit(messages)
		if err := t.append(ctx, messages[:n]); err != nil {
			return fmt.Errorf("publish: append to %s: %w", t.cfg.Topic, err)
		}
		messages = messages[n:]
	}
	return nil
}

// fit is how many of the messages, at least one, go into a batch.
func (t *Topic) fit(messages []topology.Message) int {
	size := 0
	for i, m := range messages {
		size += messageSize(m)
		if size > t.cfg.BatchBytes && i > 0 {
			return i
		}
	}
	return len(messages)
}

// messageSize is a little more than what Kafka makes of it.
func messageSize(m topology.Message) int { return len(m.Key) + len(m.Value) + 100 }

// append sends one batch. A broker that finds it too large has taken nothing of it: then each half is tried.
func (t *Topic) append(ctx context.Context, messages []topology.Message) error {
	err := t.send(ctx, messages)
	if n := len(messages); n > 1 && errors.Is(err, kafka.MessageSizeTooLarge) {
		if err := t.append(ctx, messages[:n/2]); err != nil {
			return err
		}
		return t.append(ctx, messages[n/2:])
	}
	return err
}

func (t *Topic) send(ctx context.Context, messages []topology.Message) error {
	records := make([]kafka.Record, len(messages))
	size := 0
	for i, m := range messages {
		records[i] = kafka.Record{
			Key:   kafka.NewBytes([]byte(m.Key)),
			Value: kafka.NewBytes(m.Value), // nil stays nil: a tombstone
			Headers: []kafka.Header{
				{Key: topology.HeaderEpoch, Value: strconv.AppendInt(nil, m.Epoch, 10)},
				{Key: topology.HeaderVersion, Value: strconv.AppendInt(nil, m.Version, 10)},
			},
		}
		size += messageSize(m)
	}
	req := &kafka.ProduceRequest{
		Topic:        t.cfg.Topic,
		Partition:    partition,
		RequiredAcks: kafka.RequireAll,
		Records:      kafka.NewRecordReader(records...),
	}
	if size >= compressFrom {
		req.Compression = kafka.Snappy
	}
	res, err := t.client.Produce(ctx, req)
	if err != nil {
		return err
	}
	if res.Error != nil {
		return res.Error
	}
	for i, err := range res.RecordErrors {
		return fmt.Errorf("record %s: %w", messages[i].Key, err)
	}
	return nil
}

// HeartbeatEnds is where each partition of the heartbeat topic ends now.
func (t *Topic) HeartbeatEnds(ctx context.Context) (map[int32]int64, error) {
	ends, err := t.heartbeatEnds(ctx)
	if err != nil {
		return nil, fmt.Errorf("publish: ends of %s: %w", t.cfg.HeartbeatTopic, err)
	}
	return ends, nil
}

func (t *Topic) heartbeatEnds(ctx context.Context) (map[int32]int64, error) {
	topic := t.cfg.HeartbeatTopic
	meta, err := t.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return nil, err
	}
	var ask []kafka.OffsetRequest
	for _, tp := range meta.Topics {
		if tp.Error != nil {
			return nil, tp.Error
		}
		for _, p := range tp.Partitions {
			ask = append(ask, kafka.LastOffsetOf(p.ID))
		}
	}
	if len(ask) == 0 {
		return nil, errors.New("no partitions")
	}
	res, err := t.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: ask}})
	if err != nil {
		return nil, err
	}
	ends := make(map[int32]int64, len(ask))
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			return nil, fmt.Errorf("partition %d: %w", p.Partition, p.Error)
		}
		ends[int32(p.Partition)] = p.LastOffset
	}
	if len(ends) != len(ask) {
		return nil, fmt.Errorf("%d of %d partitions answered", len(ends), len(ask))
	}
	return ends, nil
}
