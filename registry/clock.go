package registry

import "time"

// maxPulse is the most that one pulse can add: an owner that was paused for longer has not observed that time.
const maxPulse = 2 * time.Second

// streamClock is a partition's clock with the pulse that moved it last. It is a function of the log alone: whoever applies
// the same records comes to the same clock, after any number of owners. Only while a log is read again does it also take
// where the log ended.
type streamClock struct {
	micros  int64
	session string
	n       int64
}

// pulse takes the next pulse of the partition. It adds its elapsed time when it directly follows, among the pulses of
// this partition, the one before it of the same session; any other pulse only becomes the last one seen.
func (c *streamClock) pulse(p *Pulse) {
	session := cutASCII(p.Session, 64)
	if session == "" {
		c.breakPulse()
		return
	}
	if session == c.session && p.N == c.n+1 {
		c.micros += max(0, min(p.Elapsed, maxPulse)).Microseconds()
	}
	c.session, c.n = session, p.N
}

// breakPulse makes the next pulse add nothing, as after a gap in the log.
func (c *streamClock) breakPulse() { c.session, c.n = "", 0 }

// reread marks the clock as standing: what comes may have been applied before, and its pulses counted. It is over with the
// first batch that reaches the end of the log. The mark is kept with the position, so that a new owner goes on with it.
func (c *streamClock) reread() { c.session, c.n = "", -1 }

func (c *streamClock) rereading() bool { return c.session == "" && c.n < 0 }

func (c *streamClock) duration() time.Duration { return micros(c.micros) }
