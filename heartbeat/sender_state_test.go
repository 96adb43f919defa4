package heartbeat

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestNudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testConfig(), 9)
		pass(25 * time.Second)
		n := len(s.out.all())
		for range 1000 {
			s.Nudge()
		}
		synctest.Wait()
		if got := len(s.out.all()) - n; got != 1 {
			t.Errorf("%d beats at once after 1000 nudges", got)
		}
		// A service that nudges without end gets one beat per minGap.
		n = len(s.out.all())
		for range 1000 {
			s.Nudge()
			pass(time.Millisecond)
		}
		if got := len(s.out.all()) - n; got < 19 || got > 21 {
			t.Errorf("%d beats in a second of nudges", got)
		}
		s.stop()
	})
}

func TestUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Beat.Tags = []string{"a"}
		s := start(t, cfg, 10)
		pass(25 * time.Second)
		n := len(s.out.all())
		if err := s.Update(func(b *Beat) { b.Weight = 5; b.Tags = append(b.Tags, "canary"); b.Status = StatusDraining }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b := s.out.last().beat
		if len(s.out.all()) != n+1 || b.Weight != 5 || len(b.Tags) != 2 || b.Status != StatusDraining || b.Seq != int64(n+1) {
			t.Errorf("%d beats, last %+v", len(s.out.all())-n, b)
		}
		if err := s.Update(func(b *Beat) { b.Weight = 5 }); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(s.out.all()) != n+1 {
			t.Error("an update that changes nothing beats")
		}
		for name, change := range map[string]func(*Beat){
			"id":          func(b *Beat) { b.ID = "b" },
			"incarnation": func(b *Beat) { b.Incarnation++ },
			"leaving":     func(b *Beat) { b.Status = StatusLeaving },
			"weight":      func(b *Beat) { b.Weight = -1 },
		} {
			if err := s.Update(change); err == nil {
				t.Errorf("update of %s is accepted", name)
			}
		}
		pass(10 * time.Second)
		if b := s.out.last().beat; b.Weight != 5 || b.ID != "a7" {
			t.Errorf("after refused updates: %+v", b)
		}
		if err := s.Update(func(b *Beat) { b.Interval = Duration(time.Second) }); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		n = len(s.out.all())
		pass(10 * time.Second)
		if got := len(s.out.all()) - n; got < 8 || got > 12 {
			t.Errorf("%d beats in 10 s at an interval of 1 s", got)
		}
		s.stop()
	})
}

func TestCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Beat.Meta = map[string]string{"team": "a", "commit": "1"}
		cfg.Status = func() Status { return StatusDraining }
		cfg.Load = func() (*Load, *Resources) {
			return &Load{InFlight: -4, RPS: math.Inf(1), LatencyMS: math.NaN()}, &Resources{CPU: 0.5, Memory: 10}
		}
		cfg.Meta = func() map[string]string {
			return map[string]string{"commit": "2", "error": "line\none\xff" + repeat("é", 1000), "not a key": "x"}
		}
		var sent []Beat
		var errs []error
		cfg.OnSent = func(b Beat) { sent = append(sent, b) }
		cfg.OnError = func(err error) { errs = append(errs, err) }
		s := start(t, cfg, 11)
		synctest.Wait()
		b := s.out.last().beat
		if b.Status != StatusDraining || *b.Load != (Load{RPS: MaxRPS}) || *b.Resources != (Resources{CPU: 0.5, Memory: 10}) {
			t.Errorf("status %s, load %+v, resources %+v", b.Status, b.Load, b.Resources)
		}
		if v := b.Meta["error"]; !strings.HasPrefix(v, "line one\ufffdéé") || len(v) > MaxMetaValue || len(v) < MaxMetaValue-2 ||
			b.Meta["commit"] != "2" || b.Meta["team"] != "a" || len(b.Meta) != 3 {
			t.Errorf("meta %q", b.Meta)
		}
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), `"not a key"`) {
			t.Errorf("errors %v", errs)
		}
		if len(sent) != 1 || sent[0].Seq != 1 || s.template().Meta["commit"] != "1" {
			t.Errorf("sent %+v, template %+v", sent, s.template())
		}
		s.stop()
	})
}

// Callbacks that panic, hang or talk nonsense stop nothing, and what they said last holds.
func TestCallbacksThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var calls atomic.Int32
		var mode atomic.Value
		mode.Store("well")
		cfg := testConfig()
		cfg.Beat.Interval = Duration(time.Second)
		cfg.Status = func() Status {
			calls.Add(1)
			switch mode.Load() {
			case "panic":
				panic("boom")
			case "hang":
				<-release
				return StatusUp
			case "nonsense":
				return "on fire"
			case "leaving":
				return StatusLeaving
			}
			return StatusDraining
		}
		var errs notes
		cfg.OnError = func(err error) { errs.add(err.Error()) }
		cfg.OnSent = func(b Beat) {
			if mode.Load() == "hang" {
				<-release
			}
			panic("OnSent panics too")
		}
		s := start(t, cfg, 12)
		pass(5 * time.Second)
		check := func(m, want string, status Status) {
			mode.Store(m)
			errs.take()
			n := len(s.out.all())
			pass(10 * time.Second)
			if got := len(s.out.all()) - n; got < 6 {
				t.Errorf("%s: %d beats in 10 s", m, got)
			}
			if got := s.out.last().beat.Status; got != status {
				t.Errorf("%s: status %s, want %s", m, got, status)
			}
			if got := errs.take(); want != "" && (len(got) == 0 || !strings.Contains(got[0], want)) {
				t.Errorf("%s: errors %v", m, got)
			}
		}
		check("well", "", StatusDraining)
		check("panic", "boom", StatusDraining)
		check("nonsense", "on fire", StatusDraining)
		check("leaving", "leaving", StatusDraining)
		check("well", "", StatusDraining)
		before := calls.Load()
		check("hang", "", StatusDraining)
		if calls.Load() > before+1 {
			t.Errorf("a hanging callback was called %d times more", calls.Load()-before-1)
		}
		from := time.Now()
		if err := s.stop(); err != nil || time.Since(from) > time.Second {
			t.Errorf("Run = %v after %v", err, time.Since(from))
		}
		close(release)
	})
}

// Nothing that the service calls waits for Kafka.
func TestTheServiceNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testConfig(), 13)
		synctest.Wait()
		s.out.set(func(m *memory) { m.hang = true })
		s.Nudge()
		pass(time.Second)
		from := time.Now()
		for range 100 {
			s.Nudge()
			if err := s.Update(func(b *Beat) { b.Weight++ }); err != nil {
				t.Fatal(err)
			}
			_, _ = s.Stats(), s.Ready()
		}
		if took := time.Since(from); took != 0 {
			t.Errorf("waited %v", took)
		}
		s.out.set(func(m *memory) { m.hang = false })
		pass(10 * time.Second)
		if w := s.out.all()[1].beat.Weight; w != 101 {
			t.Errorf("the first beat after that has weight %d", w)
		}
		s.stop()
	})
}

func TestConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"brokers":   func(c *Config) { c.Brokers = nil },
		"no broker": func(c *Config) { c.Brokers = []string{""} },
		"beat":      func(c *Config) { c.Beat.Port = 0 },
		"seq":       func(c *Config) { c.Beat.Seq = 3 },
		"leaving":   func(c *Config) { c.Beat.Status = StatusLeaving },
		"jitter":    func(c *Config) { c.Jitter = 0.5 },
		"no jitter": func(c *Config) { c.Jitter = nan() },
		"timeout":   func(c *Config) { c.GoodbyeTimeout = -1 },
	} {
		cfg := testConfig()
		change(&cfg)
		if s, err := NewSender(cfg); err == nil || s != nil {
			t.Errorf("%s: NewSender = %v, %v", name, s, err)
		}
	}
	for interval, want := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Second: time.Second, 4 * time.Second: 2 * time.Second} {
		cfg := testConfig()
		cfg.Beat.Interval = Duration(interval)
		if err := cfg.complete(); err != nil || cfg.ProduceTimeout != want || cfg.Topic != DefaultTopic || cfg.Beat.Incarnation == 0 {
			t.Errorf("%v: %+v, %v", interval, cfg, err)
		}
	}
}

// A process that was stopped for an hour does not make up for the beats it missed.
func TestPlanAfterAPause(t *testing.T) {
	p := plan{jitter: 0.1, random: func() float64 { return 0.5 }}
	now := time.Unix(1000, 0)
	due := p.next(now, now, 10*time.Second, nil)
	if got := due.Sub(now); got != 5*time.Second {
		t.Errorf("second beat after %v", got)
	}
	late := due.Add(time.Hour)
	if got := p.next(due, late, 10*time.Second, nil).Sub(late); got != 10*time.Second {
		t.Errorf("after a pause: %v", got)
	}
	if got := p.next(late.Add(3*time.Second), late, 10*time.Second, nil).Sub(late); got != 3*time.Second {
		t.Errorf("after a nudge: %v", got)
	}
	var delays []string
	for range 6 {
		delays = append(delays, fmt.Sprint(p.next(late, late, 10*time.Second, errAway).Sub(late)))
	}
	if got := strings.Join(delays, " "); got != "37.5ms 150ms 600ms 2.4s 3.75s 3.75s" {
		t.Errorf("delays of retries: %s", got)
	}
}
