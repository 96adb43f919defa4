package front

import "time"

// Moments of the sweeper's work.
const (
	longestTick = 250 * time.Millisecond
	// A short read of a socket does not tell whether the client's end came with it. So an unused connection is looked at once
	// when it has been that for so long.
	lookAfter = time.Second
	// halfClosed is how long a client that ended its side, and may have gone, is given its answer nonetheless.
	halfClosed = time.Second
)

// tick is how often the sweeper looks: a limit acts up to two ticks late.
func (s *Server) tick() time.Duration {
	t := longestTick
	for _, d := range []time.Duration{s.settings.ClientHeader, s.settings.ClientBody, s.settings.ClientSend, s.settings.ClientIdle, s.settings.TunnelIdle} {
		if d > 0 {
			t = min(t, d/4)
		}
	}
	return max(t, 5*time.Millisecond)
}

// startSweeper has the sweeper run while there are connections. The mutex is held.
func (s *Server) startSweeper() {
	if s.sweeping {
		return
	}
	s.sweeping = true
	s.now.Store(s.millis())
	if s.timer == nil {
		s.timer = time.AfterFunc(s.tick(), s.sweep)
	} else {
		s.timer.Reset(s.tick())
	}
}

// millis is the time since the server began, and never 0.
func (s *Server) millis() int64 { return time.Since(s.began).Milliseconds() + 1 }

func (s *Server) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.millis()
	s.now.Store(now)
	slack := s.tick().Milliseconds()
	for _, c := range s.conns {
		c.sweep(now, slack)
	}
	if s.sweeping = len(s.conns) > 0; s.sweeping {
		s.timer.Reset(s.tick())
	}
}

// sweep looks at one connection. A stamp may be older than what it stands for by slack.
func (c *conn) sweep(now, slack int64) {
	seen := c.stamp.Load()
	since := c.sending.Load()
	if since > 0 && !c.sweepSending(since, now, slack) {
		return
	}
	if seen == dead {
		if since > 0 {
			_ = c.base.SetWriteDeadline(longAgo)
		}
		return
	}
	began, p := seen>>phaseBits, phase(seen&(1<<phaseBits-1))
	age := now - began
	if limit := c.limit(p); limit > 0 && age > limit.Milliseconds()+slack {
		c.expire(seen)
		return
	}
	switch p {
	case waiting, reading:
		if c.srv.closing.Load() && p == waiting {
			c.wake(seen)
		} else if age >= lookAfter.Milliseconds() && c.looked != seen {
			c.looked = seen
			if p == waiting && c.served.Load() > 0 || c.news() {
				c.wake(seen) // also to rest
			}
		}
	case handling:
		c.sweepHandling(now, age, slack)
	}
}

// sweepSending looks at a client that something is written to, and reports whether it may go on. Whether it takes anything
// only the kernel knows: a write may wait until there is much room. So what is unsent is looked at when half the time is over,
// and at its end. What somebody else writes may be waiting for a backend instead.
func (c *conn) sweepSending(since, now, slack int64) bool {
	limit := c.srv.settings.ClientSend.Milliseconds() + slack
	switch age := now - since; {
	case age <= limit/2 || c.raw == nil && age <= limit:
		return true
	case c.raw == nil:
	case c.measured != since: // half the time is over; if more is, it was the sweeper that came late
		if age > limit {
			half := now - limit/2
			if !c.sending.CompareAndSwap(since, half) {
				return true
			}
			since = half
		}
		c.measured, c.unsentThen = since, c.unsent()
		return true
	case age <= limit:
		return true
	default:
		if left := c.unsent(); left == 0 && c.spliced.Load() || c.measured == since && left < c.unsentThen {
			c.sending.CompareAndSwap(since, now)
			return true
		}
	}
	c.cut()
	return false
}

// sweepHandling looks for the end of a client whose answer takes longer than a tick.
func (c *conn) sweepHandling(now, age, slack int64) {
	if age < slack || c.life.Over() {
		return
	}
	half, all := c.gone()
	switch {
	case all:
		c.life.End()
	case !half:
		c.halved = 0
	case c.halved == 0:
		c.halved = now
	case now-c.halved >= halfClosed.Milliseconds():
		c.life.End()
	}
}
