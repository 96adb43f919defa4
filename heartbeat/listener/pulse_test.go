package listener

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/registry"
)

func TestPulseWire(t *testing.T) {
	for _, p := range []registry.Pulse{
		{Session: randomID(8), N: 1},
		{Session: "a", N: 1 << 40, Elapsed: 1000123 * time.Microsecond},
	} {
		got, err := decodePulse(encodePulse(p))
		if err != nil || got != p {
			t.Errorf("%+v came back as %+v, %v", p, got, err)
		}
	}
	if got := string(encodePulse(registry.Pulse{Session: "ab", N: 12, Elapsed: 1000123 * time.Microsecond})); got != `{"session":"ab","n":12,"elapsed_us":1000123}` {
		t.Errorf("wire form: %s", got)
	}
	for _, bad := range []string{
		``, `{}`, `null`, `[]`, `{"session":"a","n":1,"elapsed_us":0} x`, `{"session":"","n":1,"elapsed_us":0}`,
		`{"session":"a b","n":1,"elapsed_us":0}`, `{"session":"a","n":0,"elapsed_us":0}`, `{"session":"a","n":1,"elapsed_us":-1}`,
		`{"session":"a","n":1,"elapsed_us":1e18}`, `{"session":"a","n":1,"elapsed_us":0,"x":1}`, `{"session":"a","n":1.5,"elapsed_us":0}`,
	} {
		if p, err := decodePulse([]byte(bad)); err == nil {
			t.Errorf("%s was taken for %+v", bad, p)
		}
	}
}

// What pulses claim is never more than the time between their places in the log, plus a quarter of an interval, wherever
// between start and acknowledgement those places are.
func TestPulsesNeverClaimMoreThanPassed(t *testing.T) {
	const interval = time.Second
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := pulseSession{interval: interval}
		now := time.Unix(1000, 0)
		var firstPlace time.Time
		var claimed time.Duration
		for range 200 {
			start := now
			p := s.next(start)
			took := time.Duration(rng.Int64N(int64(50 * time.Millisecond)))
			if rng.IntN(5) == 0 {
				took = time.Duration(rng.Int64N(int64(2 * interval)))
			}
			place := start.Add(time.Duration(rng.Int64N(int64(took) + 1)))
			if p.N == 1 {
				firstPlace, claimed = place, 0
			}
			claimed += p.Elapsed
			if real := place.Sub(firstPlace); claimed > real+interval/4 {
				t.Fatalf("seed %d: pulse %d: %v claimed, %v passed", seed, p.N, claimed, real)
			}
			if rng.IntN(40) == 0 {
				s.end()
			} else {
				s.acked(start.Add(took))
			}
			now = start.Add(max(took, interval))
			if rng.IntN(30) == 0 {
				now = now.Add(time.Duration(rng.Int64N(int64(100 * time.Second)))) // paused
			}
		}
	}
}

// The same with the loop that writes them, over a broker that is slow, fails, or takes a pulse and says that it failed,
// now or later. The clock is the registry's rule over the pulses in the order in which they lie in the log.
func TestWrittenPulsesNeverClaimMoreThanPassed(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			const interval = time.Second
			var mu sync.Mutex
			var last registry.Pulse
			var clock time.Duration
			var first time.Time
			land := func(value []byte) {
				mu.Lock()
				defer mu.Unlock()
				p, err := decodePulse(value)
				if err != nil {
					t.Error(err)
				}
				if p.Session == last.Session && p.N == last.N+1 {
					clock += min(p.Elapsed, 2*time.Second)
				}
				if last = p; first.IsZero() {
					first = time.Now()
				}
				if passed := time.Since(first); clock > passed+interval/4 {
					t.Errorf("seed %d: the clock is at %v after %v", seed, clock, passed)
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			p := &pulser{interval: interval, open: func() bool { return true }, failed: func(error) {},
				write: func(ctx context.Context, value []byte) error {
					mu.Lock()
					before, after, luck := time.Duration(rng.Int64N(int64(300*time.Millisecond))), time.Duration(rng.Int64N(int64(900*time.Millisecond))), rng.IntN(12)
					mu.Unlock()
					sleep(ctx, before)
					switch luck {
					case 0: // lost
						return errAway
					case 1: // in the log, unknown to the writer
						land(value)
						return errAway
					case 2: // in the log later, the writer has given up by then
						wg.Go(func() { time.Sleep(3 * time.Second); land(value) })
						<-ctx.Done()
						return ctx.Err()
					}
					land(value)
					sleep(ctx, after)
					return ctx.Err()
				}}
			wg.Go(func() { p.run(ctx) })
			settle(5 * time.Minute)
			cancel()
			wg.Wait()
			if clock < time.Minute {
				t.Errorf("seed %d: the clock went only %v in five minutes", seed, clock)
			}
		})
	}
}

// clockRun owns a partition, lets d pass after a first ten seconds, and says how far the clock went in d.
func clockRun(t *testing.T, o *owner, reg *fakeRegistry, d time.Duration) time.Duration {
	t.Helper()
	defer o.start()()
	settle(10500 * time.Millisecond)
	before := reg.clock(0)
	if before < 8*time.Second {
		t.Fatalf("clock is at %v after 10s", before)
	}
	settle(d)
	return reg.clock(0) - before
}

func TestClockRunsWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		if got := clockRun(t, testOwner(t, testConfig(reg), 0, l), reg, time.Minute); got < 59*time.Second || got > 61*time.Second {
			t.Errorf("clock went %v in a minute", got)
		}
	})
}

// The owner stopped for 90 s (SIGSTOP), at whatever point, adds at most two seconds.
func TestPauseOfTheOwnerAddsLittle(t *testing.T) {
	for name, pause := range map[string]func(o *owner, at time.Time){
		"before a write": func(o *owner, at time.Time) {
			write, once := o.pulse, sync.Once{}
			o.pulse = func(ctx context.Context, v []byte) error {
				if time.Now().After(at) {
					once.Do(func() { time.Sleep(90 * time.Second) })
				}
				return write(context.WithoutCancel(ctx), v)
			}
		},
		"before an acknowledgement": func(o *owner, at time.Time) {
			write, once := o.pulse, sync.Once{}
			o.pulse = func(ctx context.Context, v []byte) error {
				err := write(ctx, v)
				if time.Now().After(at) {
					once.Do(func() { time.Sleep(90 * time.Second) })
				}
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, reg := newFakeLog(), newFakeRegistry()
				o := testOwner(t, testConfig(reg), 0, l)
				pause(o, time.Now().Add(10600*time.Millisecond))
				// The log's other end goes on, as it would with the reader on another machine.
				if got := clockRun(t, o, reg, 92*time.Second); got > 4*time.Second {
					t.Errorf("clock went %v over a pause of 90s", got)
				}
			})
		})
	}
	t.Run("between pulses", func(t *testing.T) {
		s := pulseSession{interval: time.Second}
		now := time.Unix(1000, 0)
		s.next(now)
		s.acked(now.Add(time.Millisecond))
		if p := s.next(now.Add(90 * time.Second)); p.Elapsed > 2*time.Second || p.N != 2 {
			t.Errorf("pulse after a pause of 90s claims %v", p.Elapsed)
		}
	})
}

// Everything that stands still, the clock stands still with; what was in the log meanwhile is applied when it goes on.
func TestStallsStopTheClock(t *testing.T) {
	stalls := map[string]func(l *fakeLog, reg *fakeRegistry) (end func()){
		"broker down": func(l *fakeLog, _ *fakeRegistry) func() {
			l.set(errors.New("connection refused"), nil)
			return func() { l.set(nil, nil) }
		},
		"broker hangs": func(l *fakeLog, _ *fakeRegistry) func() {
			hang := make(chan struct{})
			l.set(nil, hang)
			return func() { l.set(nil, nil); close(hang) }
		},
		"database down": func(_ *fakeLog, reg *fakeRegistry) func() {
			away := func() error { return errAway }
			reg.look(func() { reg.openErr, reg.before = away, func(int32, registry.Batch) error { return errAway } })
			return func() { reg.look(func() { reg.openErr, reg.before = nil, nil }) }
		},
		"database hangs": func(_ *fakeLog, reg *fakeRegistry) func() {
			hang := make(chan struct{})
			reg.look(func() { reg.before = func(int32, registry.Batch) error { <-hang; return errAway } })
			return func() { reg.look(func() { reg.before = nil }); close(hang) }
		},
	}
	for name, stall := range stalls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, reg := newFakeLog(), newFakeRegistry()
				o := testOwner(t, testConfig(reg), 0, l)
				stop := o.start()
				settle(10500 * time.Millisecond)
				before := reg.clock(0)
				end := stall(l, reg)
				settle(3 * time.Second)
				pulses := metricValue(o.met.pulses)
				for i := range 90 {
					for j := range 100 {
						l.beat("orders", fmt.Sprint(j), int64(i+1)) // the broker's other side lives
					}
					settle(time.Second)
				}
				if n := metricValue(o.met.pulses) - pulses; n > 0 {
					t.Errorf("%v pulses were written during the stall", n)
				}
				if o.state.ready(5*time.Second) == nil {
					t.Error("ready during the stall")
				}
				end()
				settle(3 * time.Second)
				if got := reg.clock(0) - before; got > 6*time.Second {
					t.Errorf("clock went %v over a stall of 90s", got)
				}
				if err := o.state.ready(time.Second); err != nil {
					t.Errorf("not ready after the stall: %v", err)
				}
				settle(10 * time.Second)
				if got := reg.clock(0) - before; got < 9*time.Second {
					t.Errorf("clock went only %v after the stall", got)
				}
				stop()
				reg.exactlyOnce(t, 0, l)
			})
		})
	}
}

// A database that is away stops the fetch: what waits in memory is bounded by a response and two batches.
func TestDatabaseAwayStopsTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		cfg := testConfig(reg)
		cfg.BatchRecords = 100
		o := testOwner(t, cfg, 0, l)
		stop := o.start()
		settle(time.Second)
		reg.look(func() {
			reg.openErr = func() error { return errAway }
			reg.before = func(int32, registry.Batch) error { return errAway }
		})
		for range 100 {
			for j := range 50 {
				l.beat("orders", fmt.Sprint(j), 1)
			}
			settle(200 * time.Millisecond)
		}
		if read := metricValue(o.met.records.WithLabelValues(kindBeat)); read > 400 {
			t.Errorf("%v of 5000 beats were read with the database away", read)
		}
		if away := metricValue(o.met.away.WithLabelValues("0")); away != 1 {
			t.Errorf("database_away is %v", away)
		}
		reg.look(func() { reg.openErr, reg.before = nil, nil })
		settle(5 * time.Second)
		stop()
		reg.exactlyOnce(t, 0, l)
	})
}

// Instances that beat are never older than their limit at a judgement, whatever stalls: that is what no wrong eviction
// rests on. One that stops is found.
func TestStallsMakeNobodyOld(t *testing.T) {
	const interval, limit, living = 10 * time.Second, 30 * time.Second, 20
	for seed := range uint64(25) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 4))
			l, reg := newFakeLog(), newFakeRegistry()
			ages := watchAges(reg)
			stop := testOwner(t, testConfig(reg), 0, l).start()
			senders, end := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			for i := range living {
				wg.Go(func() {
					for seq := int64(1); sleep(senders, interval-time.Duration(i)*50*time.Millisecond); seq++ {
						if l.gate(senders.Done()) == nil {
							l.beat("orders", fmt.Sprint(i), seq)
						}
					}
				})
			}
			l.beat("orders", "dead", 1)
			for range 15 {
				d := time.Duration(rng.Int64N(int64(100 * time.Second)))
				hang := make(chan struct{})
				switch rng.IntN(5) {
				case 0:
					l.set(errAway, nil)
				case 1:
					l.set(nil, hang)
				case 2:
					reg.look(func() {
						reg.openErr = func() error { return errAway }
						reg.before = func(int32, registry.Batch) error { return errAway }
					})
				case 3:
					stop()
					stop = func() {}
				}
				settle(d)
				l.set(nil, nil)
				close(hang)
				reg.look(func() { reg.openErr, reg.before = nil, nil })
				stop()
				stop = testOwner(t, testConfig(reg), 0, l).start()
				settle(time.Duration(rng.Int64N(int64(60 * time.Second))))
			}
			settle(limit + 5*time.Second)
			end()
			wg.Wait()
			stop()
			oldest, dead := ages()
			if oldest > limit {
				t.Errorf("seed %d: a living instance was %v old at a judgement", seed, oldest)
			}
			if dead <= limit {
				t.Errorf("seed %d: the dead one was only %v old at the end", seed, dead)
			}
			if reg.judged == 0 {
				t.Error("nobody was ever judged")
			}
		})
	}
}

// watchAges stamps beats as the registry does. The result is the greatest age of any instance but "dead" at a judgement,
// and the age of that at the last one.
func watchAges(reg *fakeRegistry) func() (oldest, dead time.Duration) {
	stamps := map[string]time.Duration{}
	var oldest, dead time.Duration
	reg.onBeat = func(name string, clock time.Duration) { stamps[name] = clock }
	reg.onJudge = func(clock time.Duration) {
		for name, at := range stamps {
			if name == "orders/dead" {
				dead = clock - at
			} else {
				oldest = max(oldest, clock-at)
			}
		}
	}
	return func() (time.Duration, time.Duration) { return oldest, dead }
}
