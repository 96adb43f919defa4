package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/deploy/rig"
)

// beat writes beats to the topic as any program could, in one call. Fields of the map are the JSON's.
func (w *world) beat(beats ...map[string]any) {
	w.t.Helper()
	msgs := make([]kafka.Message, len(beats))
	for i, b := range beats {
		value, err := json.Marshal(b)
		w.ok(err)
		msgs[i] = kafka.Message{Key: fmt.Appendf(nil, "%v/%v", b["service"], b["id"]), Value: value}
	}
	w.ok(w.Kafka.Produce(w.ctx, rig.TopicHeartbeat, msgs...))
}

// beater sends a beat every interval until it is stopped; change edits the fields of the next one.
type beater struct {
	w    *world
	mu   sync.Mutex
	b    map[string]any
	stop func()
}

// beater starts beating with the fields given. A field that is a func() any is called for each beat.
func (w *world) beater(fields map[string]any) *beater {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	b := &beater{w: w, b: fields, stop: func() { cancel(); <-done }}
	w.t.Cleanup(b.stop)
	go func() {
		defer close(done)
		tick := time.NewTicker(times.Beat)
		defer tick.Stop()
		for {
			if err := b.send(ctx); err != nil && ctx.Err() == nil {
				w.t.Errorf("beat: %v", err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return b
}

func (b *beater) send(ctx context.Context) error {
	b.mu.Lock()
	out := map[string]any{"interval": times.Beat.String()}
	for k, v := range b.b {
		if f, ok := v.(func() any); ok {
			v = f()
		}
		out[k] = v
	}
	b.mu.Unlock()
	value, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return b.w.Kafka.Produce(ctx, rig.TopicHeartbeat, kafka.Message{Key: fmt.Appendf(nil, "%v/%v", out["service"], out["id"]), Value: value})
}

// serial is the next seq of a beater.
func serial() func() any {
	n := 0
	return func() any { n++; return n }
}
