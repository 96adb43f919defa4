package listener

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
)

// source reads one partition's log. It is used by one goroutine at a time and useless after an error of fetch or
// bounds other than a Kafka error code.
type source interface {
	// fetch asks for the records from pos on and hands each to each, in order of offset, never one below pos. It
	// returns within about wait when there is nothing new, sooner once minBytes are there. next is where to go on (pos
	// when nothing came), end the end of the log as the broker saw it. Records handed over before an error are good.
	fetch(pos int64, minBytes int, wait time.Duration, each func(raw)) (next, end int64, err error)
	// bounds are the first offset that the log still has and the one after its last.
	bounds() (first, end int64, err error)
	// close may be called from any goroutine and ends a call that is under way.
	close()
}

// errUnreadable says that the broker answered, and that what lies at the asked offset makes no sense.
var errUnreadable = errors.New("unreadable record batch")

// leaderDialer finds the leader of a partition and opens its log.
type leaderDialer struct {
	dialer  *kafka.Dialer
	brokers []string
	topic   string
	part    int
	bytes   int
	timeout time.Duration

	next int // broker to ask first
}

// dial opens the log at its leader. ctx bounds the dialling only.
func (d *leaderDialer) dial(ctx context.Context) (source, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	broker := d.brokers[d.next%len(d.brokers)]
	conn, err := d.dialer.DialLeader(ctx, "tcp", broker, d.topic, d.part)
	if err != nil {
		d.next++
		return nil, fmt.Errorf("dial leader of %s/%d through %s: %w", d.topic, d.part, broker, err)
	}
	return &connSource{conn: conn, bytes: d.bytes, timeout: d.timeout}, nil
}

// partitions is how many partitions the topic has: the most that any broker in reach knows of, since one that lags
// behind a change would make instances of existing partitions seem to have lost theirs. All are asked at once.
func (d *leaderDialer) partitions(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	answers := make(chan answer, len(d.brokers)) // all of them fit: nobody waits for what comes too late
	for _, broker := range d.brokers {
		go func() {
			n, err := d.count(ctx, broker)
			answers <- answer{n, err}
		}()
	}
	n := 0
	var errs []error
	var late <-chan time.Time // set with the first answer: a broker that is silent costs no whole timeout then
collect:
	for range d.brokers {
		select {
		case a := <-answers:
			n = max(n, a.partitions)
			if a.err != nil {
				errs = append(errs, a.err)
			} else if late == nil {
				late = time.After(d.timeout / 4)
			}
		case <-late:
			break collect
		case <-ctx.Done():
			errs = append(errs, ctx.Err())
			break collect
		}
	}
	if n == 0 {
		return 0, errors.Join(append(errs, fmt.Errorf("no broker knows a partition of %s", d.topic))...)
	}
	return max(n, d.part+1), nil
}

// answer is what one broker said of the topic.
type answer struct {
	partitions int
	err        error
}

// count asks one broker.
func (d *leaderDialer) count(ctx context.Context, broker string) (n int, err error) {
	all, err := d.dialer.LookupPartitions(ctx, "tcp", broker, d.topic)
	if err != nil {
		return 0, fmt.Errorf("look up %s through %s: %w", d.topic, broker, err)
	}
	for _, p := range all {
		n = max(n, p.ID+1)
	}
	return n, nil
}

type connSource struct {
	conn    *kafka.Conn
	bytes   int
	timeout time.Duration
}

func (s *connSource) close() { _ = s.conn.Close() }

func (s *connSource) bounds() (first, end int64, err error) {
	if err := s.conn.SetDeadline(time.Now().Add(s.timeout)); err != nil {
		return 0, 0, fmt.Errorf("read offsets: %w", err)
	}
	if first, end, err = s.conn.ReadOffsets(); err != nil {
		return 0, 0, fmt.Errorf("read offsets: %w", err)
	}
	return first, end, nil
}

func (s *connSource) fetch(pos int64, minBytes int, wait time.Duration, each func(raw)) (next, end int64, err error) {
	next = pos
	defer func() {
		if p := recover(); p != nil { // the client's parser met bytes that it did not expect; its locks may be held
			s.close()
			err = fmt.Errorf("fetch from %d: %w: %v", next, errUnreadable, p)
		}
	}()
	if err := s.conn.SetReadDeadline(time.Now().Add(wait + s.timeout)); err != nil {
		return pos, 0, fmt.Errorf("fetch from %d: %w", pos, err)
	}
	if _, err := s.conn.Seek(pos, kafka.SeekAbsolute|kafka.SeekDontCheck); err != nil {
		return pos, 0, fmt.Errorf("fetch from %d: %w", pos, err)
	}
	batch := s.conn.ReadBatchWith(kafka.ReadBatchConfig{MinBytes: min(minBytes, s.bytes), MaxBytes: s.bytes, MaxWait: wait})
	end = batch.HighWaterMark()
	next, err = drain(batch, pos, each)
	if closeErr := batch.Close(); err == nil && closeErr != nil && !errors.Is(closeErr, kafka.RequestTimedOut) {
		err = closeErr
	}
	switch {
	case err == nil:
		return next, end, nil
	case next == pos && end > pos && isParseError(err):
		s.close()
		return next, end, fmt.Errorf("fetch from %d: %w: %w", pos, errUnreadable, err)
	}
	return next, end, fmt.Errorf("fetch from %d: %w", next, err)
}

// drain reads a fetch response to its end.
func drain(batch *kafka.Batch, pos int64, each func(raw)) (next int64, err error) {
	next = pos
	if err := batch.Err(); err != nil {
		return next, err
	}
	for {
		m, err := batch.ReadMessage()
		switch {
		case err == nil:
			if m.Offset < next { // a broker may begin before the offset that was asked for
				continue
			}
			next = m.Offset + 1
			each(raw{offset: m.Offset, key: m.Key, value: m.Value})
		case errors.Is(err, io.EOF), errors.Is(err, kafka.RequestTimedOut):
			// The end of the response. Its last batch may end in offsets that hold no record any more; the client
			// knows where that batch ends, but only after it has read a record of it.
			if next > pos {
				next = max(next, batch.Offset())
			}
			return next, nil
		default:
			return next, err
		}
	}
}

// isParseError tells bytes that can't be understood from a connection or a broker that failed.
func isParseError(err error) bool {
	var code kafka.Error
	var netErr net.Error
	return !errors.As(err, &code) && !errors.As(err, &netErr) &&
		!errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed)
}
