package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/cmd/internal/await"
)

// BrokenTopicError says that a topic exists in a form that we can't work with. Only an operator can mend it.
type BrokenTopicError struct {
	Topic string
	Wrong []string
}

func (e *BrokenTopicError) Error() string {
	return fmt.Sprintf("topic %s can't be used: %s; change it, or delete it and let it be created", e.Topic, strings.Join(e.Wrong, "; "))
}

// Topics creates and checks topics.
type Topics struct {
	client *kafka.Client
	log    zerolog.Logger
}

// requestTimeout bounds one administrative request.
const requestTimeout = 8 * time.Second

// NewTopics uses the connection settings of conn.
func NewTopics(conn *Conn, log zerolog.Logger) *Topics {
	return &Topics{log: log, client: &kafka.Client{
		Addr: kafka.TCP(conn.Brokers...), Transport: conn.Transport, Timeout: requestTimeout,
	}}
}

// Ensure creates t where it does not exist and checks it where it does. What does not break us is logged as a warning.
// The error is a BrokenTopicError for what does, and anything else may pass by itself.
func (ts *Topics) Ensure(ctx context.Context, t Topic) (created bool, err error) {
	partitions, err := ts.partitions(ctx, t.Name)
	switch {
	case err != nil:
		return false, fmt.Errorf("look for topic %s: %w", t.Name, err)
	case partitions > 0:
		return false, ts.check(ctx, t, partitions)
	}
	err = ts.create(ctx, t)
	switch {
	case errors.Is(err, kafka.TopicAlreadyExists): // another role was faster
		return false, nil
	case err != nil:
		return false, fmt.Errorf("create topic %s: %w", t.Name, err)
	}
	ts.log.Info().Str("topic", t.Name).Int("partitions", t.Partitions).Msg("topic created")
	return true, nil
}

// Await is Ensure, again and again until it succeeds. A broken topic is returned at once.
func (ts *Topics) Await(ctx context.Context, t Topic) error {
	return await.For(ctx, ts.log, "kafka topic "+t.Name, func(ctx context.Context) error {
		_, err := ts.Ensure(ctx, t)
		if broken := (*BrokenTopicError)(nil); errors.As(err, &broken) {
			return await.Permanent(err)
		}
		return err
	})
}

// Keep looks every so often whether t still exists, and creates it again when somebody deleted it. It returns when ctx
// ends. Failures are Kafka's being away, which others report; they are logged at debug level.
func (ts *Topics) Keep(ctx context.Context, t Topic, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := ts.restore(ctx, t); err != nil {
			ts.log.Debug().Err(err).Msg("look after topic")
		}
	}
}

func (ts *Topics) restore(ctx context.Context, t Topic) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	partitions, err := ts.partitions(ctx, t.Name)
	if err != nil || partitions > 0 {
		return err
	}
	ts.log.Warn().Str("topic", t.Name).Msg("topic is gone: creating it again")
	if err := ts.create(ctx, t); err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s again: %w", t.Name, err)
	}
	return nil
}

// partitions is how many partitions the topic has; 0 when it does not exist.
func (ts *Topics) partitions(ctx context.Context, name string) (int, error) {
	m, err := ts.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{name}})
	if err != nil {
		return 0, err
	}
	for _, t := range m.Topics {
		switch {
		case t.Name != name:
		case errors.Is(t.Error, kafka.UnknownTopicOrPartition):
			return 0, nil
		case t.Error != nil:
			return 0, t.Error
		default:
			return len(t.Partitions), nil
		}
	}
	return 0, nil
}

func (ts *Topics) create(ctx context.Context, t Topic) error {
	conf := kafka.TopicConfig{Topic: t.Name, NumPartitions: t.Partitions, ReplicationFactor: t.Replication}
	for _, s := range t.Settings {
		conf.ConfigEntries = append(conf.ConfigEntries, kafka.ConfigEntry{ConfigName: s.Name, ConfigValue: s.Value})
	}
	res, err := ts.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{conf}})
	if err != nil {
		return err
	}
	return res.Errors[t.Name]
}

// check compares the topic found with what we need. Where the broker does not let us read the settings, the partitions
// still count and the rest is said to be unknown.
func (ts *Topics) check(ctx context.Context, t Topic, partitions int) error {
	var broken []string
	note := func(wrong string, breaks bool) {
		if breaks {
			broken = append(broken, wrong)
			return
		}
		ts.log.Warn().Str("topic", t.Name).Msg("topic setting: " + wrong)
	}
	if partitions != t.Partitions {
		note(fmt.Sprintf("it has %d partitions, should have %d", partitions, t.Partitions), t.Fixed)
	}
	found, err := ts.settings(ctx, t.Name)
	if errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed) {
		note("the settings are not known, since we may not read them", false)
		found, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("read settings of topic %s: %w", t.Name, err)
	}
	for _, s := range t.Settings {
		value, known := found[s.Name]
		if s.Check == nil || !known {
			continue
		}
		if wrong, breaks := s.Check(value); wrong != "" {
			note(s.Name+" "+wrong, breaks)
		}
	}
	if broken != nil {
		return &BrokenTopicError{Topic: t.Name, Wrong: broken}
	}
	return nil
}

func (ts *Topics) settings(ctx context.Context, name string) (map[string]string, error) {
	res, err := ts.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: name}},
	})
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, r := range res.Resources {
		if r.Error != nil {
			return nil, r.Error
		}
		for _, e := range r.ConfigEntries {
			found[e.ConfigName] = e.ConfigValue
		}
	}
	return found, nil
}
