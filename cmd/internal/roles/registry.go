package roles

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/cmd/internal/admin"
	"github.com/upstrand/upstrand/cmd/internal/kafkaconn"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/registry/api"
)

// Registry is the settings of the role that serves the registry's API.
type Registry struct {
	Listen string
}

// Flags declares the settings in their group. Health, readiness and metrics are on the same address as the API.
func (r *Registry) Flags(set *settings.Set) {
	set.Group("Registry").Listen(&r.Listen, "listen", "127.0.0.1:8090", false, "address of the API, of /healthz, /readyz and /metrics")
}

// Join adds the role to the process and returns the address that it listens on. flag names the setting of that address.
// It serves reads while Kafka is away, and answers with errors, not with silence, while the database is.
func (r *Registry) Join(p *Process, k *kafkaconn.Options, conn *kafkaconn.Conn, store *Store, flag string) (addr string, err error) {
	beats := newBeatWriter(conn, k.TopicHeartbeat)
	handler, err := api.New(api.Config{
		Store: store.Store, Publisher: beats, Declarer: store.Store, Registerer: p.Metrics, Closing: p.closing,
		Logger: p.Log.With().Str("role", "registry").Logger(),
	})
	if err != nil {
		return "", fmt.Errorf("registry: %w", err)
	}
	ln, err := admin.Listen(r.Listen, flag, "registry", p.Log)
	if err != nil {
		return "", err
	}
	p.Ready.Set("database", store.Ready)
	p.Group.Add("database watch", store.Run)
	p.Group.OnStop("beat writer", beats.Close)
	mux := admin.Handler(p.Ready, p.Metrics)
	mux.Handle("/", handler)
	p.Group.Add("registry", admin.NewServer(ln, http.Handler(mux)).Run)
	return ln.Addr().String(), nil
}

// beatWriter puts beats that came over HTTP on the heartbeat topic, where they are everyone's.
type beatWriter struct{ w *kafka.Writer }

// A beat must be in the log within the caller's time, so batches are short and tries few; the partition is chosen as the
// senders choose it, since an instance's beats must stay in one.
func newBeatWriter(conn *kafkaconn.Conn, topic string) beatWriter {
	return beatWriter{&kafka.Writer{
		Addr: kafka.TCP(conn.Brokers...), Topic: topic, Transport: conn.Transport, Balancer: &kafka.Hash{},
		RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond, MaxAttempts: 3,
		WriteTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
	}}
}

// Publish writes the messages and waits until they are in the log.
func (b beatWriter) Publish(ctx context.Context, messages []api.Message) []error {
	batch := make([]kafka.Message, len(messages))
	for i, m := range messages {
		batch[i] = kafka.Message{Key: m.Key, Value: m.Value}
	}
	err := b.w.WriteMessages(ctx, batch...)
	var each kafka.WriteErrors
	switch {
	case err == nil:
		return nil
	case errors.As(err, &each) && len(each) == len(messages):
		return each
	}
	all := make([]error, len(messages))
	for i := range all {
		all[i] = err
	}
	return all
}

// Close ends the writer's connections.
func (b beatWriter) Close(context.Context) error { return b.w.Close() }
