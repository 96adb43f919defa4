package confgen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// publish appends what the topic lacks, and a commit; without a difference just the commit, when it is due. Whether it
// got there is seen by reading it back: the next tail takes it into the mirror.
func (t *term) publish(ctx context.Context) error {
	messages, repairs := t.pending()
	if len(messages) == 0 && !t.commitDue() {
		return nil
	}
	commit, err := t.commit()
	if err != nil {
		return err
	}
	call, cancel, err := t.l.guard(ctx, t.g.cfg.KafkaTimeout)
	if err != nil {
		return err
	}
	defer cancel()
	start := time.Now()
	err = t.g.cfg.Topic.Produce(call, append(messages, commit))
	t.g.metrics.publish.Observe(time.Since(start).Seconds())
	if err != nil {
		t.failed(ctx, "publish", fmt.Errorf("confgen: append version %d to the topic: %w", t.version, err))
		return nil // what of it got there is seen in the next round
	}
	t.troubles.works("publish")
	t.commitAt = time.Now()
	t.g.metrics.written.Add(float64(len(messages)))
	t.g.metrics.repairs.Add(float64(repairs))
	t.g.metrics.commits.Inc()
	t.g.metrics.records.Set(float64(len(t.stored.records)))
	if repairs > 0 {
		t.log.Warn().Int("records", repairs).Msg("wrote records again that the topic did not hold as published")
	}
	if err := t.tail(ctx); err != nil {
		if errors.Is(err, errAgain) {
			return err
		}
		t.failed(ctx, "topic", err)
	}
	return nil
}

// pending is the records to append, sorted by key, and how many of them belong to no version that is new.
func (t *term) pending() (messages []topology.Message, repairs int) {
	pair := t.pair()
	for _, key := range slices.Sorted(maps.Keys(t.unwritten)) {
		value := t.stored.records[key]
		if t.mirror.holds(key, value) {
			delete(t.unwritten, key)
			delete(t.fresh, key)
			continue
		}
		if !t.fresh[key] {
			repairs++
		}
		messages = append(messages, topology.Message{Record: topology.Record{Key: key, Value: value}, Pair: pair})
	}
	return messages, repairs
}

func (t *term) commitDue() bool {
	return time.Since(t.commitAt) >= t.g.cfg.CommitInterval ||
		!t.mirror.committed(t.pair(), t.stored.digest, len(t.stored.records))
}

func (t *term) commit() (topology.Message, error) {
	pair := t.pair()
	c := topology.Commit{
		Version: pair.Version,
		Epoch:   pair.Epoch,
		Digest:  t.stored.digest,
		Count:   len(t.stored.records),
		At:      t.made,
		Cause:   t.reason,
	}
	value, err := c.Encode()
	if err != nil {
		return topology.Message{}, fmt.Errorf("confgen: encode the commit of version %d: %w", t.version, err)
	}
	return topology.Message{Record: topology.Record{Key: topology.KeyCommit, Value: value}, Pair: pair}, nil
}
