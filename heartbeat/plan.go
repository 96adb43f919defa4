package heartbeat

import "time"

// plan decides when the next attempt is due.
//
// Ten thousand services that were started together, or cut off together, must not beat in step. So the beat after the
// first one, and after the first success that follows a failure, comes a random part of an interval later, which
// spreads them evenly at once; from then on each interval is drawn anew from interval ± jitter, which keeps them so.
// Nudged beats move nothing: else a change that nudges all would bring them into step.
type plan struct {
	jitter   float64
	random   func() float64
	failures int
	settled  bool // a beat has succeeded since the last failure
}

// next is the time of the next attempt after one that was made at now, when the plan said due.
func (p *plan) next(due, now time.Time, interval time.Duration, err error) time.Time {
	if err != nil {
		p.settled = false
		p.failures++
		return now.Add(p.backoff(interval))
	}
	p.failures = 0
	if !p.settled {
		p.settled = true
		return now.Add(time.Duration(p.random() * float64(interval)))
	}
	latest := now.Add(time.Duration((1 + p.jitter) * float64(interval)))
	if due.After(now) && !due.After(latest) {
		return due // this one was nudged
	}
	step := time.Duration((1 + p.jitter*(2*p.random()-1)) * float64(interval))
	if next := due.Add(step); next.After(now) && !next.After(latest) {
		return next
	}
	return now.Add(step) // the process was stopped for a while, or the interval was changed
}

// Delays between attempts while Kafka can't be reached. The first is short, since a stale connection is the usual
// cause.
const (
	firstBackoff = 50 * time.Millisecond
	backoffRatio = 4
	maxBackoff   = 5 * time.Second
)

// backoff is the delay after so many failures in a row: it grows up to half an interval, and is drawn from its upper
// half.
func (p *plan) backoff(interval time.Duration) time.Duration {
	longest := held(interval/2, 2*firstBackoff, maxBackoff)
	d := firstBackoff
	for i := 1; i < p.failures && d < longest; i++ {
		d *= backoffRatio
	}
	d = min(d, longest)
	return d/2 + time.Duration(p.random()*float64(d/2))
}
