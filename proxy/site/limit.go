package site

import (
	"context"
	"net/netip"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/limit"
)

// Limits is an Env that is told of requests that a limit held up.
type Limits interface {
	// Limited is called from the request's goroutine, and has to be quick.
	Limited(l Limited)
}

// Limited is a request that a limit held up.
type Limited struct {
	Directive string // limit_req or limit_conn
	Zone      string
	What      string // LimitDelayed, LimitRejected, or one of them in a dry run
	Level     string // how loud to say it: info, notice, warn, error
	Client    netip.Addr
	Server    string           // name of the server block
	In        *forward.Request // as the client sent it; it must not be kept
}

// What a limit came to, as $limit_req_status and $limit_conn_status say it.
const (
	limitPassed      = "PASSED"
	LimitDelayed     = "DELAYED"
	LimitRejected    = "REJECTED"
	LimitDelayedDry  = "DELAYED_DRY_RUN"
	LimitRejectedDry = "REJECTED_DRY_RUN"
)

// The directives that limit, which are also why a request is refused.
const (
	limitReq  = "limit_req"
	limitConn = "limit_conn"
)

// limitState is what limits know of a request.
type limitState struct {
	requests, conns string // what they came to; empty: not asked yet
	key             []byte
	held            []heldConn
	keys            []uint64 // of requestLimits, with skipped ones 0
}

// heldConn is a place that the request takes in a zone of connections.
type heldConn struct {
	zone *limit.Conns
	key  uint64
}

func (s *limitState) reset() {
	s.requests, s.conns = "", ""
	s.key, s.held, s.keys = s.key[:0], s.held[:0], s.keys[:0]
}

// leave gives back the places that the request takes. It comes before the write that completes the answer: else the
// client's next request could still find the place taken.
func (s *limitState) leave() {
	for i := range s.held {
		s.held[i].zone.Leave(s.held[i].key)
	}
	s.held = s.held[:0]
}

// limited asks the limits in force, each kind once in a request, and waits where a request is to wait.
func (r *request) limited(ctx context.Context) outcome {
	if len(r.conf.limit.requests) > 0 && r.limits.requests == "" {
		if o := r.limitRequests(ctx); o.what != onward {
			return o
		}
	}
	if len(r.conf.limit.conns) > 0 && r.limits.conns == "" {
		return r.limitConns()
	}
	return outcome{what: onward}
}

// The longest keys that are counted, in bytes; what is longer passes, as in nginx.
const (
	longestRequestKey = 65535
	longestConnKey    = 255
)

// limitRequests looks at all limits before it counts in any: a request that one rejects is counted in none.
func (r *request) limitRequests(ctx context.Context) outcome {
	r.counted = true
	set, s := &r.conf.limit, &r.limits
	s.keys = s.keys[:0]
	last := -1
	for i := range set.requests {
		z := set.requests[i].zone
		s.key = z.key.Append(s.key[:0], r)
		key := uint64(0)
		if len(s.key) > 0 && len(s.key) <= longestRequestKey {
			key, last = max(z.count.Key(s.key), 1), i
		}
		s.keys = append(s.keys, key)
	}
	if r.Excess() {
		return fail(500)
	}
	if last < 0 {
		return outcome{what: onward}
	}
	now := r.moment() / int64(time.Millisecond)
	for i := range last {
		l := &set.requests[i]
		if s.keys[i] != 0 && l.zone.count.Look(s.keys[i], l.zone.rate, now) > l.burst {
			return r.overRequests(l.zone.name)
		}
	}
	l := &set.requests[last]
	excess, ok := l.zone.count.Take(s.keys[last], l.zone.rate, l.burst, now)
	if !ok {
		return r.overRequests(l.zone.name)
	}
	zone, wait := l.zone.name, limit.Wait(excess, l.delay, l.zone.rate)
	for i := range last {
		if s.keys[i] == 0 {
			continue
		}
		l := &set.requests[i]
		excess, _ := l.zone.count.Take(s.keys[i], l.zone.rate, noDelay, now)
		if w := limit.Wait(excess, l.delay, l.zone.rate); w > wait {
			zone, wait = l.zone.name, w
		}
	}
	return r.delay(ctx, zone, wait)
}

// overRequests is what becomes of a request that came too early.
func (r *request) overRequests(zone string) outcome {
	set := &r.conf.limit
	r.limits.requests = LimitRejected
	if set.requestsDry {
		r.limits.requests = LimitRejectedDry
	}
	r.tellLimited(limitReq, zone, r.limits.requests, set.requestsLevel)
	if set.requestsDry {
		return outcome{what: onward}
	}
	r.why = limitReq
	return fail(set.requestsStatus)
}

// delay holds a request up. A client that leaves meanwhile is not waited for.
func (r *request) delay(ctx context.Context, zone string, wait time.Duration) outcome {
	set, s := &r.conf.limit, &r.limits
	if wait <= 0 {
		s.requests = limitPassed
		return outcome{what: onward}
	}
	s.requests = LimitDelayed
	if set.requestsDry {
		s.requests = LimitDelayedDry
	}
	r.tellLimited(limitReq, zone, s.requests, set.requestsLevel)
	if set.requestsDry {
		return outcome{what: onward}
	}
	gone := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { close(gone) })
	defer stop()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		r.waited()
		return outcome{what: onward}
	case <-gone:
		r.waited()
		r.status, r.why = 499, "client_gone"
		r.client.Abort()
		return outcome{}
	}
}

// limitConns takes a place in each zone, or in none.
func (r *request) limitConns() outcome {
	r.counted = true
	set, s := &r.conf.limit, &r.limits
	for i := range set.conns {
		l := &set.conns[i]
		s.key = l.zone.key.Append(s.key[:0], r)
		if len(s.key) == 0 || len(s.key) > longestConnKey {
			continue
		}
		s.conns = limitPassed
		key := l.zone.count.Key(s.key)
		if l.zone.count.Enter(key, l.most) {
			s.held = append(s.held, heldConn{l.zone.count, key})
			continue
		}
		s.leave()
		s.conns = LimitRejected
		if set.connsDry {
			s.conns = LimitRejectedDry
		}
		r.tellLimited(limitConn, l.zone.name, s.conns, set.connsLevel)
		if !set.connsDry {
			r.why = limitConn
			return fail(set.connsStatus)
		}
		break
	}
	if r.Excess() {
		return fail(500)
	}
	return outcome{what: onward}
}

// tellLimited tells whoever counts. A delay is said one level lower than a refusal, as in nginx.
func (r *request) tellLimited(directive, zone, what, level string) {
	l, ok := r.env.(Limits)
	if !ok {
		return
	}
	if what == LimitDelayed || what == LimitDelayedDry {
		level = quieter[level]
	}
	l.Limited(Limited{directive, zone, what, level, r.remote, r.server.name, r.in})
}

var quieter = map[string]string{"error": "warn", "warn": "notice", "notice": "info", "info": "info"}

var limitVariables = definitions{
	"limit_req_status":  maybe(func(r *request) string { return r.limits.requests }),
	"limit_conn_status": maybe(func(r *request) string { return r.limits.conns }),
}
