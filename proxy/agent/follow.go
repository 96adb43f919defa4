package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/confgen/topology"
)

// unknown as an offset: the log is to be read from its start.
const unknown = -1

// follower is the one reader of the log.
type follower struct {
	*Agent
	replica *topology.Replica
	next    int64              // offset to read, or unknown
	caught  bool               // the log was read to its end once since its start
	pending *topology.Topology // of the last good commit, not in force yet
	broken  error              // why the newest commit can't be used
	refused error              // why the last good commit is not in force
	reread  time.Time          // when the log is to be read from its start; zero: it is not
	begun   bool               // it was read from its start before
	again   time.Time          // when that was done last because of what it held
}

func newFollower(a *Agent) *follower {
	return &follower{Agent: a, replica: topology.NewReplica(), next: unknown}
}

// run follows the log over all errors until ctx ends.
func (f *follower) run(ctx context.Context) {
	pause := f.config.RetryMax / 10
	for ctx.Err() == nil {
		began := time.Now()
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		f.metrics.errors.WithLabelValues("kafka").Inc()
		f.note(err)
		if errors.Is(err, kafka.UnknownTopicOrPartition) {
			// When it is there again it may be another log, in which our place means something else.
			f.next = unknown
		}
		if time.Since(began) > f.config.RetryMax {
			pause = f.config.RetryMax / 10
		}
		sleep(ctx, pause/2+rand.N(pause))
		pause = min(2*pause, f.config.RetryMax)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// follow reads over one connection until it breaks.
func (f *follower) follow(ctx context.Context) error {
	conn, err := f.connect(ctx)
	if err != nil {
		return fmt.Errorf("agent: connect to the leader of %s: %w", f.config.Topic, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	end, err := f.place(conn)
	if err != nil {
		return fmt.Errorf("agent: find the place in %s: %w", f.config.Topic, err)
	}
	for ctx.Err() == nil {
		if f.due() {
			f.next, f.again = unknown, time.Now()
			if end, err = f.place(conn); err != nil {
				return fmt.Errorf("agent: find the start of %s: %w", f.config.Topic, err)
			}
		}
		n, high, err := f.fetch(conn)
		if errors.Is(err, kafka.OffsetOutOfRange) {
			f.next = unknown
		}
		if err != nil {
			return fmt.Errorf("agent: read %s at %d: %w", f.config.Topic, f.next, err)
		}
		if f.caught || n == 0 || f.next >= min(end, high) {
			f.caught = true
			f.settle()
		}
	}
	return ctx.Err()
}

// connect dials the partition's leader. The metadata is asked for in a way that never makes the broker create the topic.
func (f *follower) connect(ctx context.Context) (*kafka.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	meta, err := f.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{f.config.Topic}})
	if err != nil {
		return nil, err
	}
	for _, t := range meta.Topics {
		if t.Name != f.config.Topic {
			continue
		}
		if t.Error != nil {
			return nil, t.Error
		}
		for _, p := range t.Partitions {
			if p.ID == 0 {
				return f.dial(ctx, p)
			}
		}
	}
	return nil, kafka.UnknownTopicOrPartition
}

func (f *follower) dial(ctx context.Context, p kafka.Partition) (*kafka.Conn, error) {
	if p.Error != nil {
		return nil, p.Error
	}
	if p.Leader.Host == "" {
		return nil, kafka.LeaderNotAvailable
	}
	p.Topic = f.config.Topic
	conn, err := f.config.Dialer.DialPartition(ctx, "tcp", net.JoinHostPort(p.Leader.Host, fmt.Sprint(p.Leader.Port)), p)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// place moves the connection to the offset to go on at: the start, when that is not known or the log no longer has it
// (the topic was made again, or cut). It returns the log's end of now.
func (f *follower) place(conn *kafka.Conn) (int64, error) {
	_ = conn.SetDeadline(time.Now().Add(f.config.Timeout))
	first, last, err := conn.ReadOffsets()
	if err != nil {
		return 0, err
	}
	if f.next != unknown && (f.next < first || f.next > last) {
		f.log.Warn().Int64("offset", f.next).Int64("first", first).Int64("last", last).
			Msg("the log no longer has the offset: reading it from its start")
		f.next = unknown
	}
	if f.next == unknown {
		f.restart()
		f.next = first
	}
	_, err = conn.Seek(f.next, kafka.SeekAbsolute|kafka.SeekDontCheck)
	return last, err
}

// restart forgets what was read. What is in force stays so, and nothing older than it will be accepted.
func (f *follower) restart() {
	if f.begun {
		f.metrics.rereads.Inc()
	}
	f.begun = true
	f.reread = time.Time{}
	f.replica = topology.NewReplica()
	f.next, f.caught, f.pending, f.broken, f.refused = unknown, false, nil, nil, nil
}

// fetch takes in one fetch. It returns the number of records and the log's end.
func (f *follower) fetch(conn *kafka.Conn) (n int, high int64, err error) {
	_ = conn.SetDeadline(time.Now().Add(f.config.MaxWait + f.config.Timeout))
	batch := conn.ReadBatchWith(kafka.ReadBatchConfig{MinBytes: 1, MaxBytes: f.config.MaxFetch, MaxWait: f.config.MaxWait})
	high = batch.HighWaterMark()
	for {
		m, err := batch.ReadMessage()
		if err != nil {
			break // io.EOF at the end of the fetch; anything else is told by Close
		}
		f.take(m)
		n++
	}
	next := batch.Offset()
	err = batch.Close()
	if errors.Is(err, kafka.RequestTimedOut) && n == 0 && high == f.next {
		return 0, high, nil // how kafka-go says that nothing came within MaxWait
	}
	if err != nil {
		return n, 0, err
	}
	f.next = next
	return n, high, nil
}

// take folds one record.
func (f *follower) take(m kafka.Message) {
	key := string(m.Key)
	pair, err := pairOfHeaders(m.Headers)
	if err != nil {
		f.fail("content", fmt.Errorf("record %d of key %.100q: %w", m.Offset, key, err))
		return
	}
	if key != topology.KeyCommit {
		f.replica.Put(key, m.Value, pair.Epoch, pair.Version)
		return
	}
	if m.Value == nil {
		return
	}
	f.metrics.commits.Inc()
	f.sawCommit()
	t, err := f.replica.Commit(m.Value, pair.Epoch, pair.Version)
	switch {
	case err == nil:
		f.pending, f.broken = t, nil
	case errors.Is(err, topology.ErrOld):
		// Its writer has lost the lead: nobody's topology.
	case errors.Is(err, topology.ErrDigest):
		f.fail("digest", err)
	default:
		f.fail("content", err)
	}
}

// fail notes that the newest commit can't be used: neither can an older one that was waiting, since what it says may be
// long over.
func (f *follower) fail(reason string, err error) {
	f.pending, f.broken = nil, err
	if f.caught {
		f.metrics.errors.WithLabelValues(reason).Inc()
	}
}

func pairOfHeaders(hs []kafka.Header) (topology.Pair, error) {
	var epoch, version string
	for _, h := range hs {
		switch h.Key {
		case topology.HeaderEpoch:
			epoch = string(h.Value)
		case topology.HeaderVersion:
			version = string(h.Value)
		}
	}
	return topology.ParseHeaders(epoch, version)
}

// settle is called at the end of the log: however many versions were waiting, the last good commit is put in force.
func (f *follower) settle() {
	switch {
	case f.broken != nil:
		f.note(f.broken)
		f.schedule()
	case f.pending != nil:
		f.putInForce()
	default:
		f.note(f.refused)
	}
}

func (f *follower) putInForce() {
	t := f.pending
	f.pending = nil
	f.reread = time.Time{}
	err := f.apply(t, SourceTopic)
	switch {
	case errors.Is(err, errOlder):
		f.metrics.errors.WithLabelValues("older").Inc()
	case err != nil:
		f.metrics.errors.WithLabelValues("apply").Inc()
	}
	f.refused = err
	f.note(err)
}

// schedule plans to read the log from its start: soon, but not all proxies at once, and not too often.
func (f *follower) schedule() {
	if !f.reread.IsZero() {
		return
	}
	at := time.Now()
	if soonest := f.again.Add(f.config.Reread); at.Before(soonest) {
		at = soonest
	}
	f.reread = at.Add(rand.N(f.config.Jitter))
}

func (f *follower) due() bool { return !f.reread.IsZero() && !time.Now().Before(f.reread) }
