package roles

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"github.com/upstrand/upstrand/cmd/internal/kafkaconn"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/confgen"
	"github.com/upstrand/upstrand/confgen/publish"
	"github.com/upstrand/upstrand/registry"
)

// Confgen is the settings of the role that makes the topology and publishes it.
type Confgen struct {
	Poll           time.Duration
	Lease          time.Duration
	CommitInterval time.Duration
	StaleHold      time.Duration
	KeepVersions   int
}

// Flags declares the settings in their group.
func (c *Confgen) Flags(set *settings.Set) {
	g := set.Group("Confgen")
	g.Duration(&c.Poll, "poll", 500*time.Millisecond, 10*time.Millisecond, time.Minute, "how often the registry is asked whether something changed")
	g.Duration(&c.Lease, "lease", 3*time.Second, 300*time.Millisecond, 5*time.Minute,
		"how long a leader that died keeps the others waiting; it is renewed three times as often")
	g.Duration(&c.CommitInterval, "commit-interval", 10*time.Second, 100*time.Millisecond, 10*time.Minute,
		"how often the last commit is repeated, so that proxies can tell quiet from dead")
	g.Duration(&c.StaleHold, "stale-hold", 30*time.Second, time.Second, time.Hour,
		"after a restored database nothing is published until this much stream time has passed")
	g.Int(&c.KeepVersions, "keep-versions", 1000, 1, 1_000_000, "versions of the topology that the registry keeps")
}

// Join adds the role to the process.
func (c *Confgen) Join(p *Process, k *kafkaconn.Options, conn *kafkaconn.Conn, store *Store) {
	topics := kafkaconn.NewTopics(conn, p.Log)
	p.Group.Add("topology topic", func(ctx context.Context) error { return topics.Keep(ctx, k.UpstreamConfTopic(), keepTopic) })
	p.part("confgen", func(ctx context.Context) (runner, error) {
		if err := store.Await(ctx); err != nil {
			return nil, err
		}
		if err := topics.Await(ctx, k.UpstreamConfTopic()); err != nil {
			return nil, err
		}
		return c.generator(p, k, conn, store)
	})
}

func (c *Confgen) generator(p *Process, k *kafkaconn.Options, conn *kafkaconn.Conn, store *Store) (runner, error) {
	topic, err := publish.New(publish.Config{
		Brokers: conn.Brokers, Dialer: conn.Dialer, Transport: conn.Transport, Topic: k.TopicUpstreamConf, HeartbeatTopic: k.TopicHeartbeat,
	})
	if err != nil {
		return nil, err
	}
	g, err := confgen.New(confgen.Config{
		Source: store, Leases: store, Versions: versions{store.Store}, Fleet: store, Topic: topic, Heartbeats: topic,
		Housekeep: func(ctx context.Context) error {
			_, err := store.Housekeep(ctx, time.Now(), registry.Policy{})
			return err
		},
		Holder: processName(), Lease: c.Lease, Poll: c.Poll, CommitInterval: c.CommitInterval, StaleHold: c.StaleHold,
		KeepVersions: c.KeepVersions, Logger: p.Log.With().Str("role", "confgen").Logger(), Registerer: p.Metrics,
	})
	if err != nil {
		return nil, err
	}
	return publishing{g, topic}, nil
}

// versions is the store's history as confgen calls it.
type versions struct{ *registry.Store }

func (v versions) TrimVersions(ctx context.Context, keep int) error {
	_, err := v.Store.TrimVersions(ctx, keep)
	return err
}

// publishing closes the topic once the generator has ended.
type publishing struct {
	*confgen.Generator
	topic *publish.Topic
}

// Describe is what /readyz adds: who leads, and what holds it back if anything does.
func (p publishing) Describe() string {
	if note := p.Note(); note != "" {
		return p.Role() + "; " + note
	}
	return p.Role()
}

func (p publishing) Run(ctx context.Context) error {
	defer p.topic.Close()
	return p.Generator.Run(ctx)
}

// processName names this process so that people find it and no other process, also a later one, has the same.
func processName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	return fmt.Sprintf("%.64s-%d-%s", host, os.Getpid(), hex.EncodeToString(id))
}
