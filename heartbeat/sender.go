package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

// DefaultTopic is the topic of beats.
const DefaultTopic = "topic_heartbeat"

// Config is what a Sender needs. Brokers and Beat must be given, everything else has a default.
type Config struct {
	Brokers []string // host:port
	Topic   string   // default DefaultTopic
	// Transport carries TLS, SASL and dialing. Of a *kafka.Transport the Sender makes one of its own with the same
	// settings, so that it can drop broken connections without asking anyone and leaves none behind. Any other
	// RoundTripper, and one that ShareTransport is set for, is used as it is and never closed: that is for very many
	// senders in one process, and recovers from a broken connection a few seconds later. nil: plain TCP.
	Transport      kafka.RoundTripper
	ShareTransport bool

	// Beat is the template of every beat. Incarnation: default the time of NewSender in Unix ms. Seq, SentAt: not to be
	// given. Interval: how often to beat, default 10 s.
	Beat Beat
	// Jitter is the share of the interval by which a beat may come earlier or later, default 0.1, at most 0.3.
	Jitter float64
	// StartSpread delays the first beat by a random time of up to this. Default: none, the first beat is sent at once.
	StartSpread time.Duration

	ProduceTimeout time.Duration // of one attempt; default half an interval, held between 1 s and 5 s
	GoodbyeTimeout time.Duration // for the goodbye with all its attempts; default 2 s

	// Status, Load and Meta are asked before each beat, if given. Status may say up or draining and beats the
	// template's; Meta's entries are added to the template's. They are called one at a time each, in goroutines of the
	// Sender. One that panics, or has not answered within CallbackTimeout (default 250 ms), stops nothing: the beat
	// carries its last answer, the error goes to OnError, and it is not called again before it has returned. So a
	// service whose Status hangs goes on beating: a beat says that the process lives.
	Status          func() Status
	Load            func() (*Load, *Resources)
	Meta            func() map[string]string
	CallbackTimeout time.Duration

	// OnSent is told each beat that Kafka has acknowledged, OnError each failed attempt and each callback that failed.
	// Both are called like the callbacks above; while a call of them hangs, further ones are left out.
	OnSent  func(Beat)
	OnError func(error)
}

// Stats is what a Sender did so far.
type Stats struct {
	Sent, Failed int64     // attempts
	LastSent     time.Time // of the last acknowledged beat
	LastError    error     // of the last attempt, nil when it succeeded
}

// Sender beats for one incarnation of one instance. All methods may be called concurrently.
//
// It holds no queue: when a beat could not be written, the next attempt carries a new one with the state and clock of
// that moment, so the newest comes first after an outage and an outage of any length costs no memory.
type Sender struct {
	cfg    Config
	out    producer
	random func() float64 // in [0, 1)

	nudge chan struct{} // one slot: a level, not a count
	ran   atomic.Bool

	updating sync.Mutex // serialises Update; taken before mu
	mu       sync.Mutex
	beat     Beat // canonical template; its Seq is that of the last beat made
	stats    Stats

	// The fields below belong to Run.
	status asker[Status]
	load   asker[figures]
	meta   asker[map[string]string]
	told   asker[struct{}]
}

type figures struct {
	load      *Load
	resources *Resources
}

// producer writes one record and returns when the broker has it. It is for one goroutine.
type producer interface {
	produce(ctx context.Context, key, value []byte) error
	close()
}

// NewSender checks the configuration and starts nothing.
func NewSender(cfg Config) (*Sender, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("heartbeat sender: %w", err)
	}
	return newSender(cfg, newKafkaProducer(cfg)), nil
}

func newSender(cfg Config, out producer) *Sender {
	s := &Sender{cfg: cfg, out: out, random: rand.Float64, nudge: make(chan struct{}, 1), beat: cfg.Beat}
	s.status.name, s.load.name, s.meta.name = "Status", "Load", "Meta"
	if cfg.Status != nil {
		s.status.call = func() (Status, error) { return sayable(cfg.Status()) }
	}
	if cfg.Load != nil {
		s.load.call = func() (figures, error) { l, r := cfg.Load(); return figures{l, r}, nil }
	}
	if cfg.Meta != nil {
		s.meta.call = func() (map[string]string, error) { return cfg.Meta(), nil }
	}
	return s
}

// sayable refuses what a Status callback may not say.
func sayable(status Status) (Status, error) {
	if status != StatusUp && status != StatusDraining {
		return status, fmt.Errorf("it said %s, it may say up or draining", quoted(string(status)))
	}
	return status, nil
}

// complete fills in defaults and reports everything that is wrong.
func (c *Config) complete() error {
	var errs []error
	if len(c.Brokers) == 0 || slices.Contains(c.Brokers, "") {
		errs = append(errs, errors.New("brokers: at least one host:port must be given, and no empty one"))
	}
	if c.Topic == "" {
		c.Topic = DefaultTopic
	}
	if c.Beat.Seq != 0 || !c.Beat.SentAt.IsZero() || c.Beat.Status == StatusLeaving {
		errs = append(errs, errors.New("beat: seq, sent_at and the status leaving are the sender's own to give"))
	}
	if c.Beat.Incarnation == 0 {
		c.Beat.Incarnation = time.Now().UnixMilli()
	}
	b, err := withoutSeq(c.Beat)
	if err != nil {
		errs = append(errs, err)
	}
	c.Beat = b
	if c.Jitter == 0 {
		c.Jitter = 0.1
	}
	if !(c.Jitter > 0 && c.Jitter <= 0.3) {
		errs = append(errs, fmt.Errorf("jitter: %v is not above 0 and at most 0.3", c.Jitter))
	}
	for name, d := range map[string]time.Duration{"start spread": c.StartSpread, "produce timeout": c.ProduceTimeout,
		"goodbye timeout": c.GoodbyeTimeout, "callback timeout": c.CallbackTimeout} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s: %v is negative", name, d))
		}
	}
	c.ProduceTimeout = orDefault(c.ProduceTimeout, held(time.Duration(b.Interval)/2, time.Second, 5*time.Second))
	c.GoodbyeTimeout = orDefault(c.GoodbyeTimeout, 2*time.Second)
	c.CallbackTimeout = orDefault(c.CallbackTimeout, 250*time.Millisecond)
	return errors.Join(errs...)
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

func held(d, low, high time.Duration) time.Duration { return min(max(d, low), high) }

// withoutSeq is the canonical form of a template: a beat that has an incarnation but no seq yet.
func withoutSeq(b Beat) (Beat, error) {
	seq := b.Seq
	b.Seq = max(seq, 1)
	c, err := b.Canonical()
	c.Seq = seq
	return c, err
}

// Run beats until ctx ends, then writes the goodbye, and returns when Kafka has it or GoodbyeTimeout is over: that is
// its only error, since failures before it are retried for as long as it takes. A beat that is on its way when ctx
// ends has a quarter of GoodbyeTimeout to arrive first. Run may be called once. It leaves no goroutine behind but for
// callbacks that have not returned.
func (s *Sender) Run(ctx context.Context) error {
	if !s.ran.CompareAndSwap(false, true) {
		return errors.New("heartbeat sender: Run was called before; every incarnation needs a sender of its own")
	}
	defer s.out.close()
	due := time.Now().Add(time.Duration(s.random() * float64(s.cfg.StartSpread)))
	plan := plan{jitter: s.cfg.Jitter, random: s.random}
	last := time.Time{}
	for s.wait(ctx, due, last) {
		last = time.Now()
		err := s.sendBeat(ctx)
		due = plan.next(due, time.Now(), s.interval(), err)
	}
	if last.IsZero() {
		return nil // nobody has heard of this incarnation
	}
	return s.sendGoodbye()
}

// minGap is the least time between two beats, however often Nudge is called.
const minGap = 50 * time.Millisecond

// wait blocks until the next beat is due or nudged. It is false when ctx has ended.
func (s *Sender) wait(ctx context.Context, due, last time.Time) bool {
	if !sleep(ctx, last.Add(minGap), nil) {
		return false
	}
	return sleep(ctx, due, s.nudge)
}

// sleep waits until a time or a signal; it is false when ctx has ended, be the time reached or not.
func sleep(ctx context.Context, until time.Time, signal <-chan struct{}) bool {
	left := time.Until(until)
	if left <= 0 {
		// No timer for a time that has come: under the race detector, synctest breaks when two goroutines of a bubble set
		// such timers at once (Go 1.26).
		select {
		case <-signal: // told by this beat too
		default:
		}
		return ctx.Err() == nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-signal:
	}
	return ctx.Err() == nil
}

// Nudge makes the Sender beat at once, for a status or load that should not wait for the next beat. Nudges that come
// together make one beat.
func (s *Sender) Nudge() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Update changes the template and beats at once, if something changed. Who it is (service, id, incarnation) can't be
// changed, nor can it say leaving: only the end of Run does. On an error nothing has changed. change must not call
// Update.
func (s *Sender) Update(change func(*Beat)) error {
	s.updating.Lock()
	defer s.updating.Unlock()
	old := s.template()
	b := old
	b.Tags, b.Meta = slices.Clone(b.Tags), maps.Clone(b.Meta)
	change(&b)
	if b.Service != old.Service || b.ID != old.ID || b.Incarnation != old.Incarnation || b.Status == StatusLeaving {
		return errors.New("heartbeat sender: update: service, id and incarnation are fixed, and leaving is said by the end of Run")
	}
	b.Seq, b.SentAt = old.Seq, old.SentAt
	b, err := withoutSeq(b)
	if err != nil {
		return fmt.Errorf("heartbeat sender: update: %w", err)
	}
	if reflect.DeepEqual(b, old) {
		return nil
	}
	s.mu.Lock()
	b.Seq = s.beat.Seq
	s.beat = b
	s.mu.Unlock()
	s.Nudge()
	return nil
}

func (s *Sender) template() Beat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beat
}

func (s *Sender) interval() time.Duration { return time.Duration(s.template().Interval) }

// Stats tells what happened so far.
func (s *Sender) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Ready is nil when Kafka acknowledged a beat within the last stale limit; otherwise it says why not.
func (s *Sender) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.stats.LastSent.IsZero() && time.Since(s.stats.LastSent) <= s.beat.StaleLimit():
		return nil
	case s.stats.LastError != nil:
		return s.stats.LastError
	default:
		return errors.New("no beat has been sent yet")
	}
}
