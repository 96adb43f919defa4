package heartbeat

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("kafka is away")

// memory is a producer that keeps what it is given, with the time. It can be away, and it can hang.
type memory struct {
	mu       sync.Mutex
	got      []received
	attempts []time.Time
	away     bool
	hang     bool // attempts end with their context only
	closed   bool
}

type received struct {
	at   time.Time
	key  string
	beat Beat
}

func (m *memory) produce(ctx context.Context, key, value []byte) error {
	m.mu.Lock()
	away, hang := m.away, m.hang
	m.attempts = append(m.attempts, time.Now())
	m.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if away {
		return errAway
	}
	b, err := DecodeRecord(key, value)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, received{time.Now(), string(key), b})
	return nil
}

func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

func (m *memory) set(change func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

func (m *memory) all() []received {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.got
}

func (m *memory) last() received { all := m.all(); return all[len(all)-1] }

// pass lets fake time go by, and what happens in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func testConfig() Config {
	return Config{Brokers: []string{"unused:1"}, Beat: Beat{Service: "orders", ID: "a7", IP: "10.0.0.7", Port: 8080}}
}

// notes is a list that goroutines may add to.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

func (n *notes) take() (list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list, n.list = n.list, nil
	return list
}

// running is a Sender that runs in a synctest bubble.
type running struct {
	*Sender
	out  *memory
	stop func() error
}

func start(t *testing.T, cfg Config, seed uint64) *running {
	t.Helper()
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	out := &memory{}
	s := newSender(cfg, out)
	s.random = rand.New(rand.NewPCG(seed, 7)).Float64
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	return &running{s, out, func() error { cancel(); return <-result }}
}

func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := start(t, testConfig(), 1)
		synctest.Wait()
		if n := len(s.out.all()); n != 1 {
			t.Fatalf("%d beats at once, want 1", n)
		}
		pass(1000 * time.Second)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		got := s.out.all()
		if n := len(got); n < 95 || n > 107 {
			t.Errorf("%d beats in 100 intervals", n)
		}
		shortest, longest := time.Hour, time.Duration(0)
		for i, r := range got {
			if r.beat.Seq != int64(i+1) || r.beat.Incarnation != begin.UnixMilli() || r.key != "orders/a7" || !r.beat.SentAt.Equal(r.at) {
				t.Fatalf("beat %d: key %s, %+v", i, r.key, r.beat)
			}
			if i >= 2 && i < len(got)-1 {
				gap := r.at.Sub(got[i-1].at)
				shortest, longest = min(shortest, gap), max(longest, gap)
			}
		}
		if gap := got[1].at.Sub(got[0].at); gap > 10*time.Second {
			t.Errorf("second beat after %v", gap)
		}
		if shortest < 9*time.Second || shortest > 9300*time.Millisecond || longest > 11*time.Second || longest < 10700*time.Millisecond {
			t.Errorf("gaps between %v and %v, want them to fill 9 s to 11 s", shortest, longest)
		}
		if bye := got[len(got)-1]; bye.beat.Status != StatusLeaving || !s.out.closed {
			t.Errorf("last beat %+v, producer closed %v", bye.beat, s.out.closed)
		}
		if err := s.Run(t.Context()); err == nil {
			t.Error("Run a second time returned nil")
		}
	})
}

func TestStartSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, late := time.Now(), 0
		var senders []*running
		for seed := range uint64(20) {
			cfg := testConfig()
			cfg.StartSpread = 2 * time.Second
			senders = append(senders, start(t, cfg, seed))
		}
		pass(2 * time.Second)
		synctest.Wait()
		for _, s := range senders {
			if first := s.out.all()[0].at.Sub(begin); first > time.Second {
				late++
			}
			s.stop()
		}
		if late < 4 || late > 16 {
			t.Errorf("%d of 20 first beats came in the second half of the spread", late)
		}
	})
}

// Senders that start at one moment, or come back at one moment, are spread evenly one interval later.
// Tolerance: of 1,000 beats an interval, each tenth of an interval holds 100 ± 35 (3.7 standard deviations of a
// binomial draw).
func TestThousandSendersSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var senders []*running
		for seed := range uint64(1000) {
			senders = append(senders, start(t, testConfig(), seed))
		}
		spread := func(when string) {
			from := time.Now()
			pass(10 * time.Second)
			var tenths [10]int
			for _, s := range senders {
				for _, r := range s.out.all() {
					if at := r.at.Sub(from); at >= 0 && at < 10*time.Second {
						tenths[at/time.Second]++
					}
				}
			}
			for _, n := range tenths {
				if n < 65 || n > 135 {
					t.Errorf("%s: %v beats in the tenths of an interval", when, tenths)
					break
				}
			}
		}
		pass(10 * time.Second)
		spread("after a common start")
		pass(60 * time.Second)
		spread("in the long run")
		away := func(is bool) {
			for _, s := range senders {
				s.out.set(func(m *memory) { m.away = is })
			}
		}
		away(true)
		pass(20 * time.Second)
		away(false)
		pass(15 * time.Second) // at most 5 s to find out, one interval to settle
		spread("after an outage")
		for _, s := range senders {
			s.Nudge()
		}
		pass(time.Millisecond)
		spread("after a nudge of all")
		for _, s := range senders {
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// While Kafka is away nothing is kept; when it is back the newest state comes first, at once.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs []error
		cfg := testConfig()
		var status atomic.Value
		status.Store(StatusUp)
		cfg.Status = func() Status { return status.Load().(Status) }
		cfg.OnError = func(err error) { errs = append(errs, err) }
		s := start(t, cfg, 3)
		pass(time.Minute)
		before := s.out.last().beat.Seq
		s.out.set(func(m *memory) { m.away, m.attempts = true, nil })
		pass(10 * time.Minute)
		status.Store(StatusDraining)
		pass(10 * time.Minute)
		attempts := len(s.out.attempts)
		// at most 5 s apart, at least 2.5 s once settled, a handful of quick ones at first
		if attempts < 20*60/5-3 || attempts > 20*60*10/25+8 {
			t.Errorf("%d attempts in 20 minutes", attempts)
		}
		if len(errs) < attempts-1 || !errors.Is(errs[0], errAway) || !strings.Contains(errs[0].Error(), "orders/a7") {
			t.Errorf("%d errors of %d attempts, first: %v", len(errs), attempts, errs[0])
		}
		if err := s.Ready(); !errors.Is(err, errAway) {
			t.Errorf("Ready = %v while Kafka is away", err)
		}
		back := time.Now()
		s.out.set(func(m *memory) { m.away, m.got = false, nil })
		pass(5 * time.Second)
		synctest.Wait()
		first := s.out.all()[0]
		if first.beat.Status != StatusDraining || first.beat.SentAt.Before(back) || first.beat.Seq <= before+int64(attempts)-2 {
			t.Errorf("first beat after the outage: %+v (back at %v)", first.beat, back)
		}
		if st := s.Stats(); st.LastError != nil || st.Failed < int64(attempts)-1 || s.Ready() != nil {
			t.Errorf("stats %+v, ready %v", st, s.Ready())
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// The first retry comes quickly, since most failures are a connection gone stale.
func TestQuickFirstRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testConfig(), 4)
		pass(time.Minute)
		s.out.set(func(m *memory) { m.away = true; m.attempts = nil })
		s.Nudge()
		synctest.Wait()
		s.out.set(func(m *memory) { m.away, m.got = false, nil })
		failed := time.Now()
		pass(time.Second)
		if late := s.out.all()[0].at.Sub(failed); late > firstBackoff {
			t.Errorf("retried after %v", late)
		}
		s.stop()
	})
}

func TestGoodbyeIsRetriedWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testConfig(), 5)
		synctest.Wait()
		s.out.set(func(m *memory) { m.away = true })
		go func() {
			time.Sleep(1500 * time.Millisecond)
			s.out.set(func(m *memory) { m.away = false })
		}()
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		got := s.out.all()
		if len(got) != 2 || got[1].beat.Status != StatusLeaving || got[1].beat.Seq != 2 {
			t.Fatalf("got %+v", got)
		}
	})
}

func TestGoodbyeGivesUp(t *testing.T) {
	for _, mode := range []string{"away", "hanging"} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, testConfig(), 6)
			synctest.Wait()
			s.out.set(func(m *memory) { m.away, m.hang, m.attempts = mode == "away", mode == "hanging", nil })
			from := time.Now()
			err := s.stop()
			if err == nil || !strings.Contains(err.Error(), "orders/a7") {
				t.Errorf("%s: Run = %v", mode, err)
			}
			if took := time.Since(from); took < 1800*time.Millisecond || took > 2200*time.Millisecond {
				t.Errorf("%s: gave up after %v, want 2 s", mode, took)
			}
			if n := len(s.out.attempts); n < 3 {
				t.Errorf("%s: %d attempts", mode, n)
			}
		})
	}
}

// A beat that is on its way when the end comes is waited for, but not for long, and the goodbye is still the last.
func TestGoodbyeAfterABeatOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testConfig(), 7)
		synctest.Wait()
		s.out.set(func(m *memory) { m.hang, m.attempts = true, nil })
		s.Nudge()
		pass(time.Second) // the beat hangs
		from := time.Now()
		go func() {
			time.Sleep(501 * time.Millisecond)
			s.out.set(func(m *memory) { m.hang = false })
		}()
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(from); took < 500*time.Millisecond || took > 2500*time.Millisecond {
			t.Errorf("ended after %v", took)
		}
		if b := s.out.last().beat; b.Status != StatusLeaving || b.Seq != 3 {
			t.Errorf("last beat %+v", b)
		}
	})
}

func TestNoGoodbyeOfWhatWasNeverThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.StartSpread = time.Hour
		s := start(t, cfg, 8)
		synctest.Wait()
		if err := s.stop(); err != nil || len(s.out.attempts) != 0 {
			t.Errorf("Run = %v after %d attempts", err, len(s.out.attempts))
		}
	})
}
