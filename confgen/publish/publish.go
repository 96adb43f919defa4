// Package publish is the Kafka side of confgen: it reads topic_upstream_conf to its end, appends to it, and tells where
// the partitions of topic_heartbeat end. It decides nothing: what is written, and when, is the Generator's business
// (package confgen), and the form of the records is that of confgen/topology.
//
// It appends by kafka.Client.Produce, once, and not by a kafka.Writer, which goes on trying after its caller has given
// up: a leader that lost its lease must not write.
package publish

import (
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
)

const (
	// partition of topic_upstream_conf; it has one.
	partition = 0
	// defaultBatchBytes keeps a batch well below the topic's max.message.bytes of 8 MiB.
	defaultBatchBytes = 4 << 20
	// fetchBytes is above the largest batch, so that one fetch always holds a whole one.
	fetchBytes = 16 << 20
)

// Config is what a Topic needs.
type Config struct {
	Brokers        []string           // host:port of some of the cluster
	Dialer         *kafka.Dialer      // for reading; nil: kafka.DefaultDialer
	Transport      kafka.RoundTripper // for appending and for offsets; nil: kafka.DefaultTransport
	Topic          string             // topic_upstream_conf
	HeartbeatTopic string             // topic_heartbeat
	BatchBytes     int                // bytes of keys and values in one batch; default 4 MiB
}

// Topic is both topics as confgen needs them. It is for one goroutine at a time. Close it when done.
type Topic struct {
	cfg    Config
	client *kafka.Client
	conn   *kafka.Conn // to the partition's leader, kept between reads; nil: none
	next   int         // broker to ask first for the leader
}

// New checks the settings. It connects to nothing.
func New(cfg Config) (*Topic, error) {
	var errs []error
	if len(cfg.Brokers) == 0 {
		errs = append(errs, errors.New("publish: Brokers are needed"))
	}
	if cfg.Topic == "" || cfg.HeartbeatTopic == "" {
		errs = append(errs, errors.New("publish: Topic and HeartbeatTopic are needed"))
	}
	if cfg.BatchBytes < 0 {
		errs = append(errs, fmt.Errorf("publish: BatchBytes %d: want 0 or more", cfg.BatchBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cfg.Dialer == nil {
		cfg.Dialer = kafka.DefaultDialer
	}
	if cfg.BatchBytes == 0 {
		cfg.BatchBytes = defaultBatchBytes
	}
	client := &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Transport: cfg.Transport}
	return &Topic{cfg: cfg, client: client}, nil
}

// Close ends the connection kept for reading; the transport stays as it was given.
func (t *Topic) Close() error {
	if t.conn == nil {
		return nil
	}
	err := t.conn.Close()
	t.conn = nil
	return err
}
