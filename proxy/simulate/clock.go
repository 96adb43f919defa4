package simulate

import (
	"sync/atomic"
	"time"
)

// start is where virtual time begins unless a scenario says otherwise: a moment that is no edge of a second.
var start = time.Date(2026, time.January, 1, 0, 0, 0, 60_000_000, time.UTC)

// clock is virtual time. It stands still unless somebody moves it.
type clock struct{ ns atomic.Int64 }

// Now is the present moment in Unix nanoseconds.
func (c *clock) Now() int64 { return c.ns.Load() }

// forward moves to a moment that is not earlier than now.
func (c *clock) forward(ns int64) {
	if ns > c.ns.Load() {
		c.ns.Store(ns)
	}
}

// aligned is 60 ms after the next start of a whole second, which is always later than now.
func (c *clock) aligned() int64 {
	const second, after = int64(time.Second), int64(60 * time.Millisecond)
	return (c.Now()/second+1)*second + after
}
