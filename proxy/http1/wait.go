package http1

import (
	"context"
	"errors"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

// patience is how long an answer is waited for before it is worth the effort to learn of the client's end. It bounds how
// late that is noticed; and a connection that is used at least once in it seldom needs a new deadline.
const patience = 200 * time.Millisecond

// waiting is how an attempt waits for its peer: by the connection's deadline. While a sender runs it is guarded by the
// attempt's mutex.
type waiting struct {
	limit   time.Duration // for the next bytes; 0: none
	from    int64         // when the wait began, as moment has it
	stop    func() bool   // ends looking for the client's end; nil: nobody looks
	slice   bool          // the deadline is only patience's
	goes    bool          // the wait that the exchange began goes on in the next read
	sending bool          // a sender runs and there is no final head: its limits hold
}

// epoch is where moments are counted from: long enough before the first one that there are earlier ones.
var epoch = time.Now().Add(-time.Hour)

// moment is the present in nanoseconds since epoch. It is half as dear as time.Now, and no step of the host's clock is seen.
func moment() int64 { return int64(time.Since(epoch)) }

// passed is a moment that is over.
const passed = 1

// arm sets the deadline for the next read.
func (a *attempt) arm(limit time.Duration) {
	if a.sender != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.broken {
			return
		}
	}
	if a.wait.limit = limit; !a.wait.goes {
		a.wait.from = moment()
	}
	a.wait.goes = false
	a.setDeadline(min(limit/16, time.Second))
}

// setDeadline is the limit's, up to slack later, or patience's.
func (a *attempt) setDeadline(slack time.Duration) {
	w := &a.wait
	limit := w.limit
	if w.sending {
		limit = 0
	}
	w.slice = w.stop == nil && a.ctx.Done() != nil && (limit == 0 || limit > patience)
	switch {
	case w.slice:
		a.conn.readBy(w.from+int64(patience), patience)
	case limit == 0:
		a.conn.setReadDeadline(0)
	default:
		a.conn.readBy(w.from+int64(limit), slack)
	}
}

// readBy sets the deadline for reading, up to slack later than asked: one that was set before may do.
func (c *conn) readBy(t int64, slack time.Duration) {
	if late := c.deadline - t; late < 0 || late > int64(slack) {
		c.setReadDeadline(t + int64(slack))
	}
}

// setReadDeadline sets it to a moment; 0: there is none.
func (c *conn) setReadDeadline(t int64) {
	c.deadline = t
	var at time.Time
	if t != 0 {
		at = epoch.Add(time.Duration(t))
	}
	_ = c.socket.SetReadDeadline(at)
}

// patient tells whether a read that failed is to be tried again: the deadline was only patience's. From now on the end
// of the client ends the connection.
func (a *attempt) patient(err error) bool {
	if !timedOut(err) {
		return false
	}
	if a.sender != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.broken {
			return false
		}
	}
	if !a.wait.slice {
		return false
	}
	a.watch()
	a.setDeadline(0)
	return true
}

func (a *attempt) watch() {
	c := a.conn
	a.wait.stop = context.AfterFunc(a.ctx, func() { _ = c.Close() })
}

// unwatch tells whether the connection is safe from the client's end.
func (w *waiting) unwatch() bool {
	stop := w.stop
	w.stop = nil
	return stop == nil || stop()
}

// sent is called by the sender when it is done.
func (a *attempt) sent(s *sender) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := &a.wait
	if s.failure != nil {
		a.broken = true
		s.conn.setReadDeadline(passed)
		return
	}
	if !w.sending {
		return
	}
	w.sending, w.from = false, moment()
	if !w.slice {
		a.setDeadline(0)
	}
}

// lost says in nginx's words what an error of the connection means.
func (a *attempt) lost(err error) error {
	if s := a.sender; s != nil {
		a.mu.Lock()
		broken := a.broken
		a.mu.Unlock()
		if broken {
			return a.fail(s.failure.Class, s.failure.Err)
		}
	}
	if timedOut(err) {
		return a.fail(forward.OnTimeout, err)
	}
	return a.fail(forward.OnError, err)
}

func (a *attempt) fail(class forward.Class, err error) error {
	a.failed = &forward.Error{Class: class, Err: err}
	return a.failed
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return err != nil && errors.As(err, &t) && t.Timeout()
}
