package sidecar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/heartbeat"
)

func TestHealthCounts(t *testing.T) {
	for _, c := range []struct {
		rise, fall int
		checks     string // + success, - failure
		want       string // U it rose, D it fell, . nothing
	}{
		{2, 3, "-+-++---+++", "....U..D.U."},
		{1, 1, "+-+-", "UDUD"},
		{3, 2, "++-+++-+-++--", ".....U......D"},
		{2, 3, "----------", ".........."},
		{2, 3, "++--+--+--+---", ".U...........D"},
	} {
		h := health{rise: c.rise, fall: c.fall}
		got := ""
		for _, k := range c.checks {
			switch changed := h.observe(k == '+'); {
			case !changed:
				got += "."
			case h.well:
				got += "U"
			default:
				got += "D"
			}
		}
		if got != c.want {
			t.Errorf("rise %d, fall %d: %s gives %s, want %s", c.rise, c.fall, c.checks, got, c.want)
		}
	}
}

// log is what happened, in order, with fake time.
type events struct {
	mu    sync.Mutex
	begin time.Time
	list  []string
}

func (e *events) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, fmt.Sprintf("%v ", time.Since(e.begin))+fmt.Sprintf(format, args...))
}

func (e *events) take() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := strings.Join(e.list, "\n")
	e.list = nil
	return s
}

// spokenBy is a beater that tells what it would say.
type spokenBy struct {
	events *events
	cfg    heartbeat.Config
	fail   error
}

// Stats tells of one beat and one failure for each incarnation.
func (b *spokenBy) Stats() heartbeat.Stats { return heartbeat.Stats{Sent: 1, Failed: 1} }

func (b *spokenBy) Run(ctx context.Context) error {
	b.events.add("beat %s:%d +%d", b.cfg.Beat.IP, b.cfg.Beat.Port, b.cfg.Beat.Incarnation-b.events.begin.UnixMilli())
	<-ctx.Done()
	time.Sleep(100 * time.Millisecond) // the goodbye takes its time
	b.events.add("goodbye")
	return b.fail
}

func (b *spokenBy) Ready() error { return nil }

func testConfig() Config {
	return Config{
		Sender: heartbeat.Config{Brokers: []string{"kafka:9092"}, Beat: heartbeat.Beat{Service: "orders", ID: "a7", IP: "10.0.0.7", Port: 8080}},
	}
}

func inBubble(t *testing.T, cfg Config) (*Sidecar, *events, func() error) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e := &events{begin: time.Now()}
	s.newSender = func(c heartbeat.Config) (beater, error) { return &spokenBy{events: e, cfg: c}, nil }
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	return s, e, func() error { cancel(); return <-result }
}

// An instance joins when it works, leaves when it does not, and comes back as a new incarnation.
func TestRiseAndFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		outcome := errors.New("not yet")
		set := func(err error) { mu.Lock(); outcome = err; mu.Unlock() }
		cfg := testConfig()
		cfg.Check = func(context.Context) error { mu.Lock(); defer mu.Unlock(); return outcome }
		s, e, stop := inBubble(t, cfg)
		step := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := e.take(); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		}
		step(59*time.Second, "")
		if s.Ready() == nil {
			t.Error("ready before the first rise")
		}
		set(nil)
		step(2*time.Second, "") // one success at 60 s
		step(2*time.Second, "1m2s beat 10.0.0.7:8080 +62000")
		if err := s.Ready(); err != nil {
			t.Errorf("Ready = %v", err)
		}
		set(errors.New("ill"))
		step(4*time.Second, "") // failures at 64 and 66 s
		set(nil)
		step(2*time.Second, "") // one success at 68 s forgives them
		set(errors.New("ill"))
		step(6*time.Second, "1m14.1s goodbye") // 70, 72, 74 s
		if s.Ready() == nil {
			t.Error("ready while ill")
		}
		set(nil)
		step(4*time.Second, "1m18s beat 10.0.0.7:8080 +78000")
		if err := stop(); err != nil {
			t.Error(err)
		}
		step(0, "1m19.1s goodbye")
	})
}

// Incarnations go up even when two begin in one millisecond, or the given one lies ahead of the clock.
func TestIncarnationsGoUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Sender.Beat.Incarnation = time.Now().UnixMilli() + 1_000_000
		calls := 0
		cfg.Check = func(context.Context) error {
			if calls++; calls == 2 {
				return errors.New("ill")
			}
			return nil
		}
		cfg.Rise, cfg.Fall = 1, 1
		_, e, stop := inBubble(t, cfg)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		want := "0s beat 10.0.0.7:8080 +1000000\n2.1s goodbye\n4s beat 10.0.0.7:8080 +1000001"
		if got := e.take(); got != want {
			t.Errorf("got %q", got)
		}
		stop()
	})
}

func TestAddressIsLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Sender.Beat.IP = ""
		cfg.Rise = 1
		cfg.Check = func(context.Context) error { return nil }
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		e := &events{begin: time.Now()}
		s.newSender = func(c heartbeat.Config) (beater, error) { return &spokenBy{events: e, cfg: c}, nil }
		tries := 0
		s.lookup = func(_ context.Context, towards string) (string, error) {
			if tries++; tries < 4 || towards != "kafka:9092" {
				return "", errors.New("no such host")
			}
			return "10.9.9.9", nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { result <- s.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := e.take(); !strings.HasPrefix(got, "3s beat 10.9.9.9:8080") {
			t.Errorf("got %q", got)
		}
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

// Counts go on over incarnations and never fall; what stands now is told as it is.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var outcome error
		set := func(err error) { mu.Lock(); outcome = err; mu.Unlock() }
		cfg := testConfig()
		cfg.Check = func(context.Context) error { mu.Lock(); defer mu.Unlock(); return outcome }
		s, _, stop := inBubble(t, cfg)
		at := func(what string, want Stats) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			got := s.Stats()
			if (got.Incarnation != 0) != want.Well || got.Checks == 0 {
				t.Errorf("%s: incarnation %d, %d checks", what, got.Incarnation, got.Checks)
			}
			got.Incarnation, got.Checks = 0, 0
			if got != want {
				t.Errorf("%s: got %+v, want %+v", what, got, want)
			}
		}
		at("well", Stats{Well: true, Sent: 1, Failed: 1, Incarnations: 1})
		ill := errors.New("disk full")
		set(ill)
		at("ill", Stats{Sent: 1, Failed: 1, Incarnations: 1, CheckError: ill})
		if err := s.Ready(); !errors.Is(err, ill) {
			t.Errorf("Ready does not tell why the check fails: %v", err)
		}
		set(nil)
		at("well again", Stats{Well: true, Sent: 2, Failed: 2, Incarnations: 2})
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := s.Stats(); got.Sent != 2 || got.Incarnation != 0 {
			t.Errorf("ended: %+v", got)
		}
	})
}

// A check that hangs or panics counts as failed; the end does not wait for CheckTimeout.
func TestChecksThatHangOrPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		calls := 0
		cfg.Check = func(ctx context.Context) error {
			switch calls++; {
			case calls <= 2:
				return nil
			case calls == 3:
				panic("boom")
			}
			<-ctx.Done()
			return ctx.Err()
		}
		_, e, stop := inBubble(t, cfg)
		time.Sleep(10500 * time.Millisecond) // 0, 2 well; 4 panics, 6 and 8 hang for 1 s; 10 hangs
		synctest.Wait()
		if got := e.take(); !strings.HasSuffix(got, "\n9.1s goodbye") {
			t.Errorf("got %q", got)
		}
		from := time.Now()
		if err := stop(); err != nil || time.Since(from) > 0 {
			t.Errorf("ended after %v: %v", time.Since(from), err)
		}
	})
}

// Without a child, the goodbye's failure is Run's.
func TestGoodbyeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Check, cfg.Rise = func(context.Context) error { return nil }, 1
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		e := &events{begin: time.Now()}
		failure := errors.New("kafka is away")
		s.newSender = func(c heartbeat.Config) (beater, error) { return &spokenBy{events: e, cfg: c, fail: failure}, nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Run(ctx); !errors.Is(err, failure) || ExitCode(err) != 1 {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"service":  func(c *Config) { c.Sender.Beat.Service = "" },
		"port":     func(c *Config) { c.Sender.Beat.Port = 0 },
		"ip":       func(c *Config) { c.Sender.Beat.IP = "localhost" },
		"brokers":  func(c *Config) { c.Sender.Brokers = nil },
		"rise":     func(c *Config) { c.Rise = -1 },
		"fall":     func(c *Config) { c.Fall = 1000 },
		"interval": func(c *Config) { c.CheckInterval = -1 },
		"command":  func(c *Config) { c.Command = []string{""} },
	} {
		cfg := testConfig()
		change(&cfg)
		if s, err := New(cfg); err == nil || s != nil {
			t.Errorf("%s: New = %v, %v", name, s, err)
		}
	}
	cfg := testConfig()
	cfg.Sender.Beat.IP = ""
	if _, err := New(cfg); err != nil {
		t.Errorf("without ip: %v", err)
	}
}
