package rig

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
)

// brokerAnswers asks one broker for its metadata over a new connection.
func brokerAnswers(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	c, err := (&kafka.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	brokers, err := c.Brokers()
	if err == nil && len(brokers) == 0 {
		err = errors.New("no broker is registered yet")
	}
	return err
}

// Endpoint is how this process itself talks to a broker.
type Endpoint struct {
	Addr string
	TLS  *tls.Config    // nil: none
	SASL sasl.Mechanism // nil: none
}

// Transport makes connections as the broker wants them.
func (e Endpoint) Transport() *kafka.Transport {
	// What is known of topics is asked anew often: 6 s, kafka-go's default, is longer than the scaled stale limit, so that instances
	// would fall silent for that long after a topic was made anew.
	return &kafka.Transport{DialTimeout: 2 * time.Second, IdleTimeout: 5 * time.Second, MetadataTTL: 500 * time.Millisecond, TLS: e.TLS, SASL: e.SASL}
}

func (e Endpoint) dialer() *kafka.Dialer {
	return &kafka.Dialer{Timeout: 2 * time.Second, TLS: e.TLS, SASLMechanism: e.SASL}
}

// client makes calls over connections of their own: a shared transport keeps those that a restarted broker has broken.
func (e Endpoint) client() (*kafka.Client, func()) {
	t := e.Transport()
	return &kafka.Client{Addr: kafka.TCP(e.Addr), Timeout: 5 * time.Second, Transport: t}, t.CloseIdleConnections
}

// TopicConfigs returns the settings of a topic that differ from the broker's defaults, as an operator would save them
// before he makes the topic anew, and the number of its partitions.
func (e Endpoint) TopicConfigs(ctx context.Context, topic string) ([]kafka.ConfigEntry, int, error) {
	c, done := e.client()
	defer done()
	meta, err := c.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return nil, 0, fmt.Errorf("rig: metadata of %s: %w", topic, err)
	}
	if err := meta.Topics[0].Error; err != nil {
		return nil, 0, fmt.Errorf("rig: metadata of %s: %w", topic, err)
	}
	got, err := c.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}},
	})
	if err != nil {
		return nil, 0, fmt.Errorf("rig: settings of %s: %w", topic, err)
	}
	if err := got.Resources[0].Error; err != nil {
		return nil, 0, fmt.Errorf("rig: settings of %s: %w", topic, err)
	}
	const fromTopic = 1 // config source: set on the topic itself
	var entries []kafka.ConfigEntry
	for _, c := range got.Resources[0].ConfigEntries {
		if c.ConfigSource == fromTopic {
			entries = append(entries, kafka.ConfigEntry{ConfigName: c.ConfigName, ConfigValue: c.ConfigValue})
		}
	}
	return entries, len(meta.Topics[0].Partitions), nil
}

// Recreate deletes a topic with all it holds and makes it anew with the same settings. A role that was faster to create it is fine.
func (e Endpoint) Recreate(ctx context.Context, topic string) error {
	entries, partitions, err := e.TopicConfigs(ctx, topic)
	if err != nil {
		return err
	}
	if err := e.deleteTopic(ctx, topic); err != nil {
		return err
	}
	c, done := e.client()
	defer done()
	resp, err := c.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: topic, NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: entries,
	}}})
	if err == nil {
		err = resp.Errors[topic]
	}
	if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
		return fmt.Errorf("rig: create %s: %w", topic, err)
	}
	return nil
}

func (e Endpoint) deleteTopic(ctx context.Context, topic string) error {
	c, done := e.client()
	defer done()
	resp, err := c.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err == nil {
		err = resp.Errors[topic]
	}
	if err != nil {
		return fmt.Errorf("rig: delete %s: %w", topic, err)
	}
	return nil
}

// LogEnd returns the sum of the ends of a topic's partitions: how many records were ever written to it.
func (e Endpoint) LogEnd(ctx context.Context, topic string) (int64, error) {
	c, done := e.client()
	defer done()
	meta, err := c.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return 0, fmt.Errorf("rig: metadata of %s: %w", topic, err)
	}
	var ask []kafka.OffsetRequest
	for _, p := range meta.Topics[0].Partitions {
		ask = append(ask, kafka.LastOffsetOf(p.ID))
	}
	got, err := c.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: ask}})
	if err != nil {
		return 0, fmt.Errorf("rig: offsets of %s: %w", topic, err)
	}
	var sum int64
	for _, p := range got.Topics[topic] {
		if p.Error != nil {
			return 0, fmt.Errorf("rig: offsets of %s: %w", topic, p.Error)
		}
		sum += p.LastOffset
	}
	return sum, nil
}

// Produce writes records to a topic, acknowledged, each in the partition that the senders' balancer gives its key.
func (e Endpoint) Produce(ctx context.Context, topic string, msgs ...kafka.Message) error {
	t := e.Transport()
	defer t.CloseIdleConnections()
	w := &kafka.Writer{Addr: kafka.TCP(e.Addr), Topic: topic, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
		BatchTimeout: 2 * time.Millisecond, BatchSize: 1000, Transport: t}
	if err := w.WriteMessages(ctx, msgs...); err != nil {
		return fmt.Errorf("rig: produce %d records to %s: %w", len(msgs), topic, errors.Join(err, w.Close()))
	}
	return w.Close()
}
