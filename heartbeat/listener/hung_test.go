package listener

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
)

// A broker that takes connections and never answers must block nothing for longer than its deadlines, also where the
// client sets none (SASL), and the end must not wait for them.
func TestHungBroker(t *testing.T) {
	for name, dialer := range map[string]*kafka.Dialer{
		"plain": {},
		"sasl":  {SASLMechanism: plain.Mechanism{Username: "u", Password: "p"}},
	} {
		t.Run(name, func(t *testing.T) {
			addr, accepted := hungBroker(t)
			cfg := scaled(addr, newFakeRegistry())
			cfg.Dialer = dialer
			cfg.ReadTimeout = 300 * time.Millisecond
			l := startListener(t, cfg)
			eventually(t, 5*time.Second, "a group error", func() bool { return metricValue(l.met.groupErrors) >= 2 })
			l.stop(t)

			cfg.ReadTimeout, cfg.StopTimeout = 30*time.Second, 200*time.Millisecond
			before := accepted()
			l = startListener(t, cfg)
			eventually(t, 5*time.Second, "a connection", func() bool { return accepted() > before })
			start := time.Now()
			l.stop(t)
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("stopping took %v", took)
			}
		})
	}
}

// A broker that says nothing hides no other, nor costs it a whole timeout; the one that knows of most partitions is right.
func TestPartitionsBesideAHungBroker(t *testing.T) {
	hung, _ := hungBroker(t)
	few, many := startBroker(t, "", 0), startBroker(t, "", 0)
	few.create(t, 2)
	many.create(t, 5)
	d := &leaderDialer{dialer: &kafka.Dialer{}, brokers: []string{hung, few.addr, many.addr}, topic: testTopic, timeout: 4 * time.Second}
	start := time.Now()
	n, err := d.partitions(context.Background())
	if took := time.Since(start); n != 5 || err != nil || took >= d.timeout {
		t.Errorf("%d partitions after %v: %v", n, took, err)
	}
	d.brokers, d.timeout = []string{hung}, 100*time.Millisecond
	if n, err := d.partitions(context.Background()); err == nil {
		t.Errorf("%d partitions through a broker that says nothing", n)
	}
}

// hungBroker accepts connections and says nothing.
func hungBroker(t *testing.T) (addr string, accepted func() int) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		wg.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return ln.Addr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(conns)
	}
}

// freezer makes connections that can be stopped like a network that swallows everything.
type freezer struct {
	mu     sync.Mutex
	frozen chan struct{} // nil: not frozen
}

func (f *freezer) freeze() (thaw func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan struct{})
	f.frozen = c
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.frozen = nil
		close(c)
	}
}

func (f *freezer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	f.mu.Lock()
	frozen := f.frozen
	f.mu.Unlock()
	if frozen != nil {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-frozen:
		}
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	mine, theirs := net.Pipe()
	go f.pump(theirs, c)
	go f.pump(c, theirs)
	return mine, nil
}

// pump copies until an end closes; what comes while frozen waits.
func (f *freezer) pump(dst, src net.Conn) {
	defer func() { _ = dst.Close(); _ = src.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		f.mu.Lock()
		frozen := f.frozen
		f.mu.Unlock()
		if frozen != nil {
			<-frozen
		}
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// A broker that stops answering in the middle: every read ends by its deadline, and all goes on when it answers again.
func TestBrokerFreezes(t *testing.T) {
	b := startBroker(t, "", 0)
	b.create(t, 3)
	rec := newStore(t)
	f := &freezer{}
	cfg := scaled(b.addr, rec)
	cfg.Dialer = &kafka.Dialer{DialFunc: f.dial}
	l := startListener(t, cfg)
	s := newSender(t, b.addr)
	s.beats(t, 50)
	rec.all(t, 10*time.Second, 50, 1)
	eventually(t, 10*time.Second, "ready", func() bool { return l.Ready() == nil })
	thaw := f.freeze()
	eventually(t, 10*time.Second, "notice", func() bool { return l.Ready() != nil })
	for range 10 {
		s.beats(t, 50)
	}
	thaw()
	rec.all(t, 15*time.Second, 50, s.n)
	eventually(t, 15*time.Second, "ready again", func() bool { return l.Ready() == nil })
	thaw = f.freeze()
	defer thaw()
	eventually(t, 10*time.Second, "notice", func() bool { return l.Ready() != nil })
	start := time.Now()
	l.stop(t)
	if took := time.Since(start); took > cfg.StopTimeout+2*time.Second {
		t.Errorf("stopping took %v with a frozen broker", took)
	}
}
