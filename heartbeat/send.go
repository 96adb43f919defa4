package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
)

// sendBeat makes a beat of this moment and tries to write it once.
func (s *Sender) sendBeat(ctx context.Context) error {
	b := s.compose(ctx)
	value, err := b.Encode()
	if err == nil {
		err = s.attempt(ctx, b, value)
	}
	s.settle(b, err)
	return err
}

// attempt writes one beat. The end of ctx does not tear it away, since the goodbye must come after it, but leaves it
// little time.
func (s *Sender) attempt(ctx context.Context, b Beat, value []byte) error {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ProduceTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		sleep(own, time.Now().Add(s.cfg.GoodbyeTimeout/4), nil)
		cancel()
	})
	defer stop()
	return s.produce(own, b, value)
}

func (s *Sender) produce(ctx context.Context, b Beat, value []byte) error {
	if err := s.out.produce(ctx, b.Key(), value); err != nil {
		return fmt.Errorf("send beat %d of %s: %w", b.Seq, b.Key(), err)
	}
	return nil
}

// sendGoodbye writes the last word of the incarnation, trying for as long as GoodbyeTimeout lasts. Every try carries
// the same beat, so it does not matter if one that seemed to fail arrived.
func (s *Sender) sendGoodbye() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.GoodbyeTimeout)
	defer cancel()
	b := s.nextBeat()
	b.Status = StatusLeaving
	value, err := b.Encode()
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := s.tryGoodbye(ctx, b, value)
		s.settle(b, err)
		if err == nil {
			return nil
		}
		if !sleep(ctx, time.Now().Add(min(time.Duration(try)*firstBackoff, s.cfg.GoodbyeTimeout/8)), nil) {
			return fmt.Errorf("goodbye not written within %v: %w", s.cfg.GoodbyeTimeout, err)
		}
	}
}

// tryGoodbye has half of what is left of the time: a connection that died silently eats all it is given, and a second
// one must still have its chance.
func (s *Sender) tryGoodbye(ctx context.Context, b Beat, value []byte) error {
	deadline, _ := ctx.Deadline()
	try, cancel := context.WithTimeout(ctx, max(time.Until(deadline)/2, 2*firstBackoff))
	defer cancel()
	return s.produce(try, b, value)
}

// settle records the outcome of an attempt and tells it.
func (s *Sender) settle(b Beat, err error) {
	s.mu.Lock()
	s.stats.LastError = err
	if err == nil {
		s.stats.Sent++
		s.stats.LastSent = time.Now()
	} else {
		s.stats.Failed++
	}
	s.mu.Unlock()
	if err != nil {
		s.report(err)
	} else if s.cfg.OnSent != nil {
		s.tell("OnSent", func() { s.cfg.OnSent(b) })
	}
}

func (s *Sender) report(err error) {
	if s.cfg.OnError != nil {
		s.tell("OnError", func() { s.cfg.OnError(err) })
	}
}

// tell calls one of the service's listeners, unless an earlier call has not returned. A panic ends there: there is
// nobody else to tell.
func (s *Sender) tell(name string, call func()) {
	if s.told.busy() {
		return
	}
	s.told.name = name
	s.told.call = func() (struct{}, error) { call(); return struct{}{}, nil }
	s.told.start()
	limit, cancel := context.WithTimeout(context.Background(), s.cfg.CallbackTimeout)
	defer cancel()
	_, _, _ = s.told.collect(limit)
}

// nextBeat is the template with the next seq and the time of now.
func (s *Sender) nextBeat() Beat {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beat.Seq++
	b := s.beat
	b.SentAt = time.Now()
	return b
}

// compose makes the beat of this moment: the template and what the callbacks say, made to fit where it does not.
func (s *Sender) compose(ctx context.Context) Beat {
	s.status.start()
	s.load.start()
	s.meta.start()
	limit, cancel := context.WithTimeout(ctx, s.cfg.CallbackTimeout)
	defer cancel()
	status, hasStatus, err1 := s.status.collect(limit)
	load, hasLoad, err2 := s.load.collect(limit)
	meta, hasMeta, err3 := s.meta.collect(limit)

	b := s.nextBeat()
	if hasStatus {
		b.Status = status
	}
	if hasLoad {
		b.Load, b.Resources = fitLoad(load.load, b.Load), fitResources(load.resources, b.Resources)
	}
	if hasMeta {
		var dropped []string
		b.Meta, dropped = fitMeta(b.Meta, meta)
		if len(dropped) > 0 {
			err3 = errors.Join(err3, fmt.Errorf("callback Meta: left out %s: %d entries, keys of %s, %d bytes in all are allowed",
				cut(strings.Join(dropped, ", "), maxShown), MaxMeta, allowedMetaKey, MaxMetaTotal))
		}
	}
	if err := errors.Join(err1, err2, err3); err != nil && ctx.Err() == nil {
		s.report(err)
	}
	return b
}

// A figure that a callback got wrong must not cost the beat: it is held within its limits.

func fitLoad(l, otherwise *Load) *Load {
	if l == nil {
		return otherwise
	}
	return &Load{InFlight: min(max(l.InFlight, 0), MaxInFlight), RPS: fit(l.RPS, MaxRPS), LatencyMS: fit(l.LatencyMS, MaxLatencyMS)}
}

func fitResources(r, otherwise *Resources) *Resources {
	if r == nil {
		return otherwise
	}
	return &Resources{CPU: fit(r.CPU, MaxCPU), Memory: min(max(r.Memory, 0), MaxMemory)}
}

func fit(v, high float64) float64 {
	if math.IsNaN(v) || v <= 0 {
		return 0
	}
	return min(v, high)
}

// fitMeta adds entries to the template's: values are cleaned and cut, entries that can't be carried are left out and
// named.
func fitMeta(template, more map[string]string) (meta map[string]string, dropped []string) {
	meta = maps.Clone(template)
	if meta == nil {
		meta = make(map[string]string, len(more))
	}
	total := 0
	for k, v := range meta {
		total += len(k) + len(v)
	}
	for _, k := range slices.Sorted(maps.Keys(more)) {
		v := cleaned(more[k])
		old, replaces := meta[k]
		grows := len(k) + len(v)
		if replaces {
			grows = len(v) - len(old)
		}
		if !isMetaKey(k) || !replaces && len(meta) == MaxMeta || total+grows > MaxMetaTotal {
			dropped = append(dropped, quoted(k))
			continue
		}
		meta[k] = v
		total += grows
	}
	return meta, dropped
}

// cleaned is text as a value of meta may be.
func cleaned(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return cut(s, MaxMetaValue)
}
