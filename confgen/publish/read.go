package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/confgen/topology"
)

// Read calls f for each record from the offset from (negative: the first there is) to the end that the log has when Read
// begins, or a little further, in order. The Extent's End is where to go on. When from lies before the log's start, it
// begins at the start; when it lies beyond the end, there is nothing to read, and the Extent tells.
//
// A record whose headers are missing or make no sense comes with the zero Pair, older than all others.
func (t *Topic) Read(ctx context.Context, from int64, f func(topology.Message)) (topology.Extent, error) {
	extent, err := t.read(ctx, from, f)
	if err == nil {
		return extent, nil
	}
	// Whatever it was, a new connection finds the partition's leader anew.
	_ = t.Close()
	return topology.Extent{}, fmt.Errorf("publish: read %s: %w", t.cfg.Topic, err)
}

func (t *Topic) read(ctx context.Context, from int64, f func(topology.Message)) (topology.Extent, error) {
	conn, err := t.connect(ctx)
	if err != nil {
		return topology.Extent{}, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return topology.Extent{}, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	start, end, err := conn.ReadOffsets()
	if err != nil {
		return topology.Extent{}, fmt.Errorf("read its offsets: %w", cause(ctx, err))
	}
	next := from
	if next < start {
		next = start
	}
	for empty := 0; next < end; {
		after, err := fetch(conn, next, f)
		if errors.Is(err, kafka.RequestTimedOut) && inTime(ctx) {
			after, err = next, nil // kafka-go's word for a fetch that gave nothing
		}
		if err != nil {
			return topology.Extent{}, fmt.Errorf("fetch from offset %d: %w", next, cause(ctx, err))
		}
		if after > next {
			next, empty = after, 0
			continue
		}
		// Compaction can leave nothing between here and the end. A broker that has something gives it at once.
		if empty++; empty == 2 {
			next = end
		}
	}
	if from > end {
		return topology.Extent{Start: start, End: end}, nil
	}
	return topology.Extent{Start: start, End: max(next, end)}, nil
}

// How long one broker may take to lead to the leader, when there are others to ask.
const (
	leastShare = time.Second
	mostShare  = 5 * time.Second
)

// connect gives the connection to the partition's leader, through whichever broker answers. Each has its share of the
// time, and the one that answered last is asked first: one that is silent must not stand before the others.
func (t *Topic) connect(ctx context.Context) (*kafka.Conn, error) {
	if t.conn != nil {
		return t.conn, nil
	}
	var errs []error
	for untried := len(t.cfg.Brokers); untried > 0 && ctx.Err() == nil; untried-- {
		share := mostShare
		if deadline, ok := ctx.Deadline(); ok {
			share = max(leastShare, min(share, time.Until(deadline)/time.Duration(untried)))
		}
		broker := t.cfg.Brokers[t.next%len(t.cfg.Brokers)]
		conn, err := t.dial(ctx, broker, share)
		if err == nil {
			t.conn = conn
			return conn, nil
		}
		t.next++
		errs = append(errs, fmt.Errorf("through %s: %w", broker, err))
	}
	return nil, fmt.Errorf("connect: %w", errors.Join(append(errs, ctx.Err())...))
}

// dial connects to the leader by what one broker says. kafka-go's SASL exchange has no deadline, so what is still being
// set up when the time is over is cut.
func (t *Topic) dial(ctx context.Context, broker string, limit time.Duration) (*kafka.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d := *t.cfg.Dialer
	open := d.DialFunc
	if open == nil {
		open = (&net.Dialer{LocalAddr: d.LocalAddr, FallbackDelay: d.FallbackDelay, KeepAlive: d.KeepAlive}).DialContext
	}
	var stops []func() bool
	d.DialFunc = func(call context.Context, network, address string) (net.Conn, error) {
		conn, err := open(call, network, address)
		if err == nil {
			stops = append(stops, context.AfterFunc(ctx, func() { _ = conn.Close() }))
		}
		return conn, err
	}
	conn, err := d.DialLeader(ctx, "tcp", broker, t.cfg.Topic, partition)
	for _, stop := range stops {
		stop()
	}
	return conn, err
}

// fetch reads what one fetch gives, and says which offset comes after it.
func fetch(conn *kafka.Conn, from int64, f func(topology.Message)) (int64, error) {
	if _, err := conn.Seek(from, kafka.SeekAbsolute|kafka.SeekDontCheck); err != nil {
		return 0, err
	}
	batch := conn.ReadBatchWith(kafka.ReadBatchConfig{MinBytes: 1, MaxBytes: fetchBytes, MaxWait: 100 * time.Millisecond})
	for {
		m, err := batch.ReadMessage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, errors.Join(err, batch.Close())
		}
		f(fromKafka(m))
	}
	after := batch.Offset()
	return after, batch.Close()
}

func fromKafka(m kafka.Message) topology.Message {
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
		pair = topology.Pair{}
	}
	out := topology.Message{Record: topology.Record{Key: string(m.Key)}, Pair: pair, Offset: m.Offset}
	if len(m.Value) > 0 { // no record of ours has an empty value: it is a tombstone
		out.Value = m.Value
	}
	return out
}

func inTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Now().Before(deadline))
}

// cause says that the context ended rather than what that did to the connection.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
