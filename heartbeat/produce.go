package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// kafkaProducer writes single records with acks from all replicas, one attempt a call.
//
// It stands on kafka.Client rather than kafka.Writer: a Writer gathers batches that a sender of one record every few
// seconds has no use for, and goes on retrying after its caller gave up, so that a beat could land behind the goodbye.
type kafkaProducer struct {
	client kafka.Client
	topic  string
	hash   kafka.Hash // FNV-1a of the key, as all Go senders choose, so they agree on an instance's partition
	own    *transport // nil when the transport is somebody else's
}

func newKafkaProducer(cfg Config) *kafkaProducer {
	p := &kafkaProducer{topic: cfg.Topic}
	p.client = kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Timeout: cfg.ProduceTimeout, Transport: cfg.Transport}
	settings, isPlain := cfg.Transport.(*kafka.Transport)
	if cfg.Transport == nil || isPlain && (settings == nil || !cfg.ShareTransport) {
		p.own = newTransport(settings, cfg.Topic)
		p.client.Transport = p.own.kafka
	}
	return p
}

func (p *kafkaProducer) produce(ctx context.Context, key, value []byte) error {
	err := p.try(ctx, key, value)
	if err == nil {
		return nil
	}
	if p.own != nil {
		p.own.drop()
	}
	return fmt.Errorf("topic %s: %w", p.topic, err)
}

func (p *kafkaProducer) try(ctx context.Context, key, value []byte) error {
	partitions, err := p.partitions(ctx)
	if err != nil {
		return err
	}
	res, err := p.client.Produce(ctx, &kafka.ProduceRequest{
		Topic:        p.topic,
		Partition:    p.hash.Balance(kafka.Message{Key: key}, partitions...),
		RequiredAcks: kafka.RequireAll,
		Records:      kafka.NewRecordReader(kafka.Record{Time: time.Now(), Key: kafka.NewBytes(key), Value: kafka.NewBytes(value)}),
	})
	if err != nil {
		return err
	}
	for _, err := range res.RecordErrors {
		return errors.Join(res.Error, err)
	}
	return res.Error
}

// partitions lists the topic's partitions, those without a leader included, from what the transport knows: it asks the
// broker by itself now and then, and after each failure.
func (p *kafkaProducer) partitions(ctx context.Context) ([]int, error) {
	res, err := p.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{p.topic}})
	if err != nil {
		return nil, err
	}
	for _, t := range res.Topics {
		if t.Name != p.topic {
			continue
		}
		if t.Error != nil {
			return nil, t.Error
		}
		ids := make([]int, len(t.Partitions))
		for i := range ids {
			ids[i] = i
		}
		if len(ids) > 0 {
			return ids, nil
		}
	}
	return nil, kafka.UnknownTopicOrPartition
}

func (p *kafkaProducer) close() {
	if p.own != nil {
		p.own.close()
	}
}

// transport is a kafka.Transport that can let go of all its connections: a connection that died silently would
// otherwise be used again until the operating system gives it up, and the cluster's layout as it was kept with it.
type transport struct {
	kafka  *kafka.Transport
	dial   func(context.Context, string, string) (net.Conn, error)
	cancel context.CancelFunc // ends dials and kafka-go's own goroutine

	mu     sync.Mutex
	closed bool
	conns  map[*conn]struct{}
}

// metadataTTL is how often a sender's transport asks for the layout when all is well. kafka-go's default of 6 s would
// make ten thousand senders ask more often than they beat.
const metadataTTL = time.Minute

// newTransport makes a transport with the settings of another, or with none.
func newTransport(settings *kafka.Transport, topic string) *transport {
	if settings == nil {
		settings = &kafka.Transport{}
	}
	base := settings.Context
	if base == nil {
		base = context.Background()
	}
	t := &transport{dial: settings.Dial, conns: make(map[*conn]struct{})}
	if t.dial == nil {
		t.dial = (&net.Dialer{Timeout: 3 * time.Second}).DialContext
	}
	base, t.cancel = context.WithCancel(base)
	t.kafka = &kafka.Transport{
		Dial:           t.connect,
		DialTimeout:    settings.DialTimeout,
		IdleTimeout:    settings.IdleTimeout,
		MetadataTTL:    orDefault(settings.MetadataTTL, metadataTTL),
		MetadataTopics: []string{topic},
		ClientID:       settings.ClientID,
		TLS:            settings.TLS,
		SASL:           settings.SASL,
		Resolver:       settings.Resolver,
		Context:        base,
	}
	return t
}

func (t *transport) connect(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := t.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	tracked := &conn{Conn: c, transport: t}
	t.conns[tracked] = struct{}{}
	return tracked, nil
}

// drop closes all connections and forgets the layout.
func (t *transport) drop() {
	t.kafka.CloseIdleConnections()
	t.mu.Lock()
	conns := t.conns
	t.conns = make(map[*conn]struct{})
	t.mu.Unlock()
	for c := range conns {
		c.Conn.Close()
	}
}

func (t *transport) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	t.drop()
}

// conn is a connection that its transport knows of.
type conn struct {
	net.Conn
	transport *transport
}

func (c *conn) Close() error {
	c.transport.mu.Lock()
	delete(c.transport.conns, c)
	c.transport.mu.Unlock()
	return c.Conn.Close()
}
