package listener

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/registry"
)

// pulseKey is the key of a pulse. '~' can't begin a service name, so no beat has it.
const pulseKey = "~pulse"

const (
	maxPulseSession = 64
	maxPulseCounted = 2 * time.Second // no pulse ever claims more
	maxPulseTimeout = 5 * time.Second
)

// wirePulse is a pulse as it stands in the log.
type wirePulse struct {
	Session   string `json:"session"`
	N         int64  `json:"n"`
	ElapsedUS int64  `json:"elapsed_us"`
}

func encodePulse(p registry.Pulse) []byte {
	b := make([]byte, 0, 96)
	b = append(b, `{"session":"`...)
	b = append(b, p.Session...) // hex: needs no escaping
	b = append(b, `","n":`...)
	b = strconv.AppendInt(b, p.N, 10)
	b = append(b, `,"elapsed_us":`...)
	b = strconv.AppendInt(b, p.Elapsed.Microseconds(), 10)
	return append(b, '}')
}

// decodePulse is strict: a stranger's record under the pulses' key must not move a clock by accident.
func decodePulse(value []byte) (registry.Pulse, error) {
	var w wirePulse
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return registry.Pulse{}, fmt.Errorf("not a pulse: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return registry.Pulse{}, errors.New("not a pulse: data after the object")
	}
	switch {
	case w.Session == "" || len(w.Session) > maxPulseSession || !isToken(w.Session):
		return registry.Pulse{}, fmt.Errorf("pulse session must be 1 to %d letters or digits", maxPulseSession)
	case w.N < 1:
		return registry.Pulse{}, fmt.Errorf("pulse number %d: must be 1 or more", w.N)
	case w.ElapsedUS < 0 || w.ElapsedUS > int64(time.Hour/time.Microsecond):
		return registry.Pulse{}, fmt.Errorf("pulse elapsed_us %d: must be 0 to an hour", w.ElapsedUS)
	}
	return registry.Pulse{Session: w.Session, N: w.N, Elapsed: time.Duration(w.ElapsedUS) * time.Microsecond}, nil
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}

// pulser writes one partition's pulses. What a pulse claims must never be more than the time that really lay between
// its own place in the log and that of the pulse before it, give or take a quarter of an interval, or the living would
// seem older than they are:
//
//   - A pulse is at its place some time between the start of its write and the acknowledgement. So elapsed runs from
//     the start of the previous write to the start of this one, and when the previous acknowledgement was slow, from
//     slack before that acknowledgement instead.
//   - A write that failed or whose end is not known may or may not be in the log, now or later. The next pulse then
//     begins a new session, and the first pulse of a session adds nothing.
//   - A pulse that comes late (the process was paused) claims two intervals at most.
//   - While the gate is shut nothing is written, and a new session begins when it opens.
type pulser struct {
	interval time.Duration
	write    func(ctx context.Context, value []byte) error // one attempt, acknowledged by all replicas
	open     func() bool                                   // the reading side is alive
	failed   func(error)                                   // a write failed or its end is not known
}

// run writes pulses until ctx ends.
func (p *pulser) run(ctx context.Context) {
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	s := pulseSession{interval: p.interval}
	for {
		if p.open() {
			p.one(ctx, &s)
		} else {
			s.end()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *pulser) one(ctx context.Context, s *pulseSession) {
	ctx, cancel := context.WithTimeout(ctx, min(2*p.interval, maxPulseTimeout))
	defer cancel()
	value := encodePulse(s.next(time.Now()))
	if err := p.write(ctx, value); err != nil {
		s.end()
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			p.failed(err)
		}
		return
	}
	s.acked(time.Now())
}

// pulseSession numbers pulses and measures between them. The zero session is over.
type pulseSession struct {
	interval time.Duration
	id       string
	n        int64
	start    time.Time // of the last pulse's write
	from     time.Time // the next pulse's elapsed counts from here
}

// next is the pulse whose write starts now.
func (s *pulseSession) next(now time.Time) registry.Pulse {
	if s.id == "" {
		s.id, s.n = randomID(8), 0
	}
	s.n++
	s.start = now
	if s.n == 1 {
		return registry.Pulse{Session: s.id, N: 1}
	}
	elapsed := min(max(now.Sub(s.from), 0), 2*s.interval, maxPulseCounted)
	return registry.Pulse{Session: s.id, N: s.n, Elapsed: elapsed}
}

// acked says that the last pulse is in the log.
func (s *pulseSession) acked(now time.Time) {
	s.from = s.start
	if slow := now.Add(-s.interval / 4); slow.After(s.from) {
		s.from = slow
	}
}

func (s *pulseSession) end() { s.id = "" }
