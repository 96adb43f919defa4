package listener

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/registry"
)

// Recorder opens the streams that batches are applied to.
type Recorder interface {
	// OpenStream makes owner the owner of partition part in the registry and returns its state as committed. It must
	// be callable again at any time, also while an older Stream of the partition is still in use somewhere: that one
	// then finds itself fenced at its next Apply once the offset has moved.
	OpenStream(ctx context.Context, part int32, owner string) (Stream, error)
}

// Stream is one partition's place in the registry. It is used by one goroutine at a time.
type Stream interface {
	// State is the stream as this owner last saw it committed. NextOffset -1: never read from.
	State() registry.StreamState
	// Apply commits a batch in one transaction, or nothing of it. registry.ErrFenced: the offset in the registry is
	// not the batch's From, so another owner has been at work.
	Apply(ctx context.Context, b registry.Batch) (registry.Result, error)
	// Restart moves the stream to offset, with an event that gives cause.
	Restart(ctx context.Context, offset int64, cause string) error
	// Adopt takes over the instances of partitions that no longer exist, when the topic has that many partitions.
	Adopt(ctx context.Context, partitions int) error
}

// Config says how a Listener works. Brokers, Topic, GroupID and Recorder are required; a zero duration or count takes
// the default in its comment.
type Config struct {
	Brokers   []string           // host:port, at least one
	Dialer    *kafka.Dialer      // TLS and SASL of the group and of the fetches; its DialFunc is wrapped, the value is not changed
	Transport kafka.RoundTripper // for pulses; nil: a transport of its own with Dialer's TLS and SASL
	Topic     string
	GroupID   string
	Recorder  Recorder

	PulseInterval time.Duration // 1 s

	BatchRecords int           // most records of one transaction; 2000
	BatchTime    time.Duration // how long a batch that isn't full waits for more; 50 ms
	FetchBytes   int           // asked of the broker per fetch, bounds memory; 1 MiB
	FetchWait    time.Duration // how long the broker may hold a fetch that has nothing to return; 250 ms
	ReadTimeout  time.Duration // for each answer of a broker, beyond FetchWait, and for dialling; 5 s

	SessionTimeout         time.Duration // the group takes a silent member's partitions away after this; 6 s
	HeartbeatInterval      time.Duration // of the group membership; 1 s
	RebalanceTimeout       time.Duration // how long the group waits for members to come back in a rebalance; 10 s
	JoinBackoff            time.Duration // before joining again after an error, and the least time between two joins; 1 s
	PartitionWatchInterval time.Duration // how often the number of partitions is looked at; 5 s
	CommitInterval         time.Duration // how often offsets go to Kafka, for lag tools; 1 s

	RetryMin     time.Duration // first wait after an error of Kafka or the database, doubled up to RetryMax, with jitter; 100 ms
	RetryMax     time.Duration // 2 s
	ApplyTimeout time.Duration // for one transaction; 30 s
	StopTimeout  time.Duration // for leaving the group when Run's context ends; after it connections are cut; 3 s

	Owner      string           // name in the registry; default host-pid-random, at most 128 ASCII characters
	Now        func() time.Time // wall clock for ReceivedAt, shown to people; default time.Now
	Logger     zerolog.Logger
	Registerer prometheus.Registerer // nil: metrics are kept but not registered
}

// withDefaults returns the config with defaults in place, or every problem it has.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(len(c.Brokers) > 0, "no brokers")
	need(c.Topic != "", "no topic")
	need(c.GroupID != "", "no group id")
	need(c.Recorder != nil, "no recorder")
	need(len(c.Owner) <= maxOwner, fmt.Sprintf("owner is longer than %d bytes", maxOwner))

	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"pulse interval", &c.PulseInterval, time.Second},
		{"batch time", &c.BatchTime, 50 * time.Millisecond},
		{"fetch wait", &c.FetchWait, 250 * time.Millisecond},
		{"read timeout", &c.ReadTimeout, 5 * time.Second},
		{"session timeout", &c.SessionTimeout, 6 * time.Second},
		{"heartbeat interval", &c.HeartbeatInterval, time.Second},
		{"rebalance timeout", &c.RebalanceTimeout, 10 * time.Second},
		{"join backoff", &c.JoinBackoff, time.Second},
		{"partition watch interval", &c.PartitionWatchInterval, 5 * time.Second},
		{"commit interval", &c.CommitInterval, time.Second},
		{"retry min", &c.RetryMin, 100 * time.Millisecond},
		{"retry max", &c.RetryMax, 2 * time.Second},
		{"apply timeout", &c.ApplyTimeout, 30 * time.Second},
		{"stop timeout", &c.StopTimeout, 3 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
		need(*d.value >= time.Millisecond, fmt.Sprintf("%s is %v, less than 1ms", d.name, *d.value))
	}
	if c.BatchRecords == 0 {
		c.BatchRecords = 2000
	}
	if c.FetchBytes == 0 {
		c.FetchBytes = 1 << 20
	}
	need(c.BatchRecords > 0, fmt.Sprintf("batch of %d records", c.BatchRecords))
	need(c.FetchBytes >= 1<<10 && c.FetchBytes <= 64<<20, fmt.Sprintf("fetch of %d bytes: must be 1 KiB to 64 MiB", c.FetchBytes))
	need(c.RetryMin <= c.RetryMax, "retry min is above retry max")
	need(c.HeartbeatInterval < c.SessionTimeout, "heartbeat interval must be below the session timeout")
	if len(errs) > 0 {
		return Config{}, fmt.Errorf("listener: %w", errors.Join(errs...))
	}

	if c.Owner == "" {
		c.Owner = newOwner()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Dialer == nil {
		c.Dialer = &kafka.Dialer{Timeout: 10 * time.Second, DualStack: true}
	}
	return c, nil
}

const maxOwner = 128 // what the registry can hold

// newOwner names this process in a way that people can find it and that no two listeners share.
func newOwner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	host = strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r
		}
		return '-'
	}, host)
	return fmt.Sprintf("%.64s-%d-%s", host, os.Getpid(), randomID(4))
}

// randomID is n random bytes in hex.
func randomID(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
