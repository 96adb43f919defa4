package rig

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/confgen/topology"
)

// Seen is a topology that was committed to the topic for the first time.
type Seen struct {
	*topology.Topology
	Cause string
	Read  time.Time // when the observer read its commit
}

// Observer follows topic_upstream_conf from its first record and keeps every version that was ever committed, so that a test
// can look at what happened between two moments, not only at what is now. It refuses what an agent would refuse.
type Observer struct {
	kafka Endpoint
	topic string

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each commit
	replica  *topology.Replica
	next     int64
	seen     []Seen
	commits  int       // repeated ones included
	last     time.Time // of the newest commit, repeated ones included
	ignored  int       // records of a writer that had lost the lead
	problems []error   // commits that could not be reproduced
	restart  bool      // read the topic from its start again
	anew     bool      // the next commit counts as new even if its version is not
}

func newObserver(e Endpoint, topic string) *Observer {
	return &Observer{kafka: e, topic: topic, changed: make(chan struct{}), replica: topology.NewReplica()}
}

// run reads until ctx ends, over outages of the broker.
func (o *Observer) run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = o.follow(ctx) // an outage is the test's own doing
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (o *Observer) follow(ctx context.Context) error {
	c, err := o.kafka.dialer().DialLeader(ctx, "tcp", o.kafka.Addr, o.topic, 0)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	first, end, err := c.ReadOffsets()
	if err != nil {
		return err
	}
	if _, err := c.Seek(o.begin(first, end), kafka.SeekAbsolute); err != nil {
		return err
	}
	for ctx.Err() == nil && !o.mustRestart() {
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		if err := o.batch(c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// begin is the offset to go on from. A topic that was made anew is read from its start into an empty replica.
func (o *Observer) begin(first, end int64) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.restart || o.next > end {
		o.replica, o.next, o.restart, o.anew = topology.NewReplica(), 0, false, true
	}
	o.next = max(o.next, first)
	return o.next
}

func (o *Observer) mustRestart() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.restart
}

// Restart makes the observer read from the start again. Versions seen so far are kept; the next commit is listed even if its version
// has been seen before.
func (o *Observer) Restart() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.restart = true
}

func (o *Observer) batch(c *kafka.Conn) error {
	b := c.ReadBatchWith(kafka.ReadBatchConfig{MinBytes: 1, MaxBytes: 10 << 20, MaxWait: 200 * time.Millisecond})
	for {
		m, err := b.ReadMessage()
		if err != nil {
			closeErr := b.Close()
			if closeErr == nil || errors.Is(closeErr, kafka.RequestTimedOut) {
				return nil // the batch is read to its end
			}
			return closeErr
		}
		o.record(m)
	}
}

func (o *Observer) record(m kafka.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = m.Offset + 1
	var epoch, version string
	for _, h := range m.Headers {
		switch h.Key {
		case topology.HeaderEpoch:
			epoch = string(h.Value)
		case topology.HeaderVersion:
			version = string(h.Value)
		}
	}
	pair, err := topology.ParseHeaders(epoch, version)
	if err != nil {
		o.problems = append(o.problems, fmt.Errorf("record %d %q: %w", m.Offset, m.Key, err))
		return
	}
	if string(m.Key) != topology.KeyCommit {
		if !o.replica.Put(string(m.Key), m.Value, pair.Epoch, pair.Version) {
			o.ignored++
		}
		return
	}
	t, err := o.replica.Commit(m.Value, pair.Epoch, pair.Version)
	if errors.Is(err, topology.ErrOld) {
		o.ignored++
		return
	}
	if err != nil {
		o.problems = append(o.problems, fmt.Errorf("commit at %d: %w", m.Offset, err))
		return
	}
	o.commits++
	o.last = time.Now()
	if n := len(o.seen); n == 0 || o.anew || o.seen[n-1].Version != t.Version {
		o.anew = false
		o.seen = append(o.seen, Seen{Topology: t, Cause: o.replica.Applied().Cause, Read: time.Now()})
	} else if o.seen[n-1].Epoch != t.Epoch {
		again := *o.seen[n-1].Topology // others hold the one that was seen
		again.Epoch = t.Epoch
		o.seen[n-1].Topology = &again
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// Versions are all versions committed so far, in the order of the log.
func (o *Observer) Versions() []Seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]Seen(nil), o.seen...)
}

// Latest is the newest topology, nil before the first.
func (o *Observer) Latest() *Seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.seen) == 0 {
		return nil
	}
	s := o.seen[len(o.seen)-1]
	return &s
}

// Commits counts commits, repeated ones included, and says when the newest was read.
func (o *Observer) Commits() (int, time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.commits, o.last
}

// Ignored counts the records and commits that came from a writer after another had taken the lead.
func (o *Observer) Ignored() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ignored
}

// Problems are the records and commits that an agent could not have used, other than Ignored ones.
func (o *Observer) Problems() []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]error(nil), o.problems...)
}

// Await waits until the newest topology satisfies ok, which says what is missing otherwise.
func (o *Observer) Await(ctx context.Context, ok func(Seen) error) (Seen, error) {
	last := errors.New("no version was committed yet")
	for {
		o.mu.Lock()
		changed := o.changed
		o.mu.Unlock()
		if s := o.Latest(); s != nil {
			if last = ok(*s); last == nil {
				return *s, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Seen{}, fmt.Errorf("rig: topology: %w (%v)", last, ctx.Err())
		}
	}
}

// Instances are those of a service; the second result is false when the topology has no such service.
func (s Seen) Instances(service string) ([]topology.Instance, bool) {
	for _, sv := range s.Config.Services {
		if sv.Name == service {
			return sv.Instances, true
		}
	}
	return nil, false
}

// Instance finds one instance.
func (s Seen) Instance(service, id string) (topology.Instance, bool) {
	list, _ := s.Instances(service)
	for _, i := range list {
		if i.ID == id {
			return i, true
		}
	}
	return topology.Instance{}, false
}
