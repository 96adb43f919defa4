package roles

import (
	"context"
	"time"

	"github.com/upstrand/upstrand/cmd/internal/kafkaconn"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/heartbeat/listener"
	"github.com/upstrand/upstrand/registry"
)

// keepTopic is how often a role looks whether its topic still exists.
const keepTopic = 10 * time.Second

// Listener is the settings of the role that takes beats from Kafka into the registry.
type Listener struct {
	GroupID        string
	PulseInterval  time.Duration
	BatchRecords   int
	BatchTime      time.Duration
	SessionTimeout time.Duration
	UnprovenLimit  time.Duration
}

// Flags declares the settings in their group.
func (l *Listener) Flags(set *settings.Set) {
	g := set.Group("Listener")
	g.Match(&l.GroupID, "group", "upstrand-listener", "consumer group; the listeners of one group share the partitions", "1 to 200 characters",
		func(s string) bool { return s != "" && len(s) <= 200 })
	g.Duration(&l.PulseInterval, "pulse-interval", time.Second, 10*time.Millisecond, 2*time.Second, "how often a partition's clock moves on")
	g.Int(&l.BatchRecords, "batch-records", 2000, 1, 100_000, "most records of one transaction")
	g.Duration(&l.BatchTime, "batch-time", 50*time.Millisecond, time.Millisecond, 5*time.Second, "how long a batch that is not full waits for more")
	g.Duration(&l.SessionTimeout, "session-timeout", 6*time.Second, 500*time.Millisecond, 5*time.Minute,
		"another listener takes over the partitions of one that was silent for this long; a broker allows 6s at least unless told otherwise")
	g.Duration(&l.UnprovenLimit, "unproven-limit", 5*time.Minute, time.Second, 24*time.Hour,
		"how long instances that fell silent together are held in the topology before they are let go in small steps")
}

// StoreOptions is what the store must know of these settings.
func (l *Listener) StoreOptions() registry.Options {
	return registry.Options{UnprovenLimit: l.UnprovenLimit}
}

// Join adds the role to the process.
func (l *Listener) Join(p *Process, k *kafkaconn.Options, conn *kafkaconn.Conn, store *Store) {
	topics := kafkaconn.NewTopics(conn, p.Log)
	p.Group.Add("heartbeat topic", func(ctx context.Context) error { return topics.Keep(ctx, k.HeartbeatTopic(), keepTopic) })
	p.part("listener", func(ctx context.Context) (runner, error) {
		if err := store.Await(ctx); err != nil {
			return nil, err
		}
		if err := topics.Await(ctx, k.HeartbeatTopic()); err != nil {
			return nil, err
		}
		return listener.New(l.config(p, k, conn, store))
	})
}

// config derives the group's other times from the session timeout, in the proportions of their defaults.
func (l *Listener) config(p *Process, k *kafkaconn.Options, conn *kafkaconn.Conn, store *Store) listener.Config {
	share := func(def time.Duration) time.Duration {
		return max(min(def, time.Duration(float64(def)*float64(l.SessionTimeout)/float64(6*time.Second))), 10*time.Millisecond)
	}
	return listener.Config{
		Brokers: conn.Brokers, Dialer: conn.Dialer, Transport: conn.Transport, Topic: k.TopicHeartbeat, GroupID: l.GroupID,
		Recorder:      recorder{store.Store},
		PulseInterval: l.PulseInterval, BatchRecords: l.BatchRecords, BatchTime: l.BatchTime,
		SessionTimeout: l.SessionTimeout, HeartbeatInterval: share(time.Second), RebalanceTimeout: share(10 * time.Second),
		JoinBackoff: share(time.Second), PartitionWatchInterval: share(5 * time.Second),
		Logger: p.Log.With().Str("role", "listener").Logger(), Registerer: p.Metrics,
	}
}

// recorder hands the store's streams out as what the listener calls them.
type recorder struct{ store *registry.Store }

func (r recorder) OpenStream(ctx context.Context, part int32, owner string) (listener.Stream, error) {
	return r.store.OpenStream(ctx, part, owner)
}
