package roles

import (
	"context"
	"fmt"
	"time"

	"github.com/upstrand/upstrand/cmd/internal/kafkaconn"
	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// Migrate is the settings of the step that brings the schema up to date and creates the topics.
type Migrate struct {
	Topics bool
	Wait   time.Duration
}

// Flags declares the settings in their group.
func (m *Migrate) Flags(set *settings.Set) {
	g := set.Group("Migrate")
	g.Bool(&m.Topics, "topics", true, "also create the topics that do not exist and check the ones that do; --topics=false for the schema alone")
	g.Duration(&m.Wait, "wait", 2*time.Minute, time.Second, time.Hour, "how long to wait for the database and for Kafka before giving up")
}

// Run does the work and returns. It may be run at any time, also while roles are running, and by several at once.
func (m *Migrate) Run(ctx context.Context, p *Process, k *kafkaconn.Options, conn *kafkaconn.Conn, store *Store) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.Wait, fmt.Errorf("gave up after %v (--wait)", m.Wait))
	defer cancel()
	if err := store.AwaitAnswer(ctx); err != nil {
		return err
	}
	// The time limit is for what is absent. A change of a large table takes as long as it takes.
	applied, err := store.Migrate(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	p.Log.Info().Strs("applied", applied).Msg("schema is up to date")
	if !m.Topics {
		return nil
	}
	topics := kafkaconn.NewTopics(conn, p.Log)
	for _, t := range []kafkaconn.Topic{k.HeartbeatTopic(), k.UpstreamConfTopic()} {
		if err := topics.Await(ctx, t); err != nil {
			return err
		}
	}
	p.Log.Info().Msg("topics are as they should be")
	return nil
}
