package balance

import "time"

// Clock gives the present moment in Unix nanoseconds. It must never step back: failure windows are computed from it.
type Clock func() int64

// SystemClock is the wall time at this call plus the monotonic time since, so that a step of the host's clock neither
// opens nor closes a failure window.
func SystemClock() Clock {
	start := time.Now()
	wall := start.UnixNano()
	return func() int64 { return wall + int64(time.Since(start)) }
}

// moment is one reading of a clock. Failure windows count whole seconds, as nginx does; slow start and response times
// count milliseconds.
type moment struct{ second, milli int64 }

func (c Clock) moment() moment { return momentAt(c()) }

func momentAt(ns int64) moment {
	return moment{ns / int64(time.Second), ns / int64(time.Millisecond)}
}

// wholeSeconds rounds up: a window of 500 ms is one of a second, not none.
func wholeSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}
