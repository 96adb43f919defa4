package site

import (
	"strings"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/upstrand"
)

// walkState is a request's walk through an upstrand, of which it makes one at most: it begins when the variable of the
// upstrand is read first.
type walkState struct {
	upstrand *Upstrand // nil: there is no walk
	walk     upstrand.Walk
	stops    []walkStop // entered, in order; behind them what took the place of the answer
	over     bool       // the walk has its result: the variable goes on naming the last upstream, as a plain one
}

// walkStop is one stop as the status variables tell it.
type walkStop struct {
	name     string
	from, to int  // its tries in the request's trail; to is -1 as long as they go on
	blank    bool // no backend's answer was passed on: the variables say nothing
}

const interceptedStop = "<intercepted>"

func (w *walkState) reset() {
	stops := w.stops[:0]
	*w = walkState{}
	w.stops = stops
}

// upstrandValue is $upstrand_NAME: the upstream at hand. The name is in lower case. A request that walks one upstrand
// reads others as empty.
func (r *request) upstrandValue(name string) (string, bool) {
	w := &r.walk
	if w.upstrand == nil {
		u := r.env.Upstrand(name)
		if u == nil {
			return "", false
		}
		r.beginWalk(u)
	}
	if at := w.walk.At(); at != nil && strings.EqualFold(w.upstrand.Name, name) {
		return at.Name, true
	}
	return "", false
}

func (r *request) beginWalk(u *Upstrand) {
	ask := upstrand.Ask{Method: r.in.Method}
	if r.trace != nil {
		ask.Tell = func(s upstrand.Step) { r.step("upstrand", u.Name+": "+s.String(), nil) }
	}
	r.walks = true
	r.walk.upstrand = u
	r.walk.walk = u.State.Begin(ask, r.env.Now())
}

// leads tells whether a proxy_pass to this host goes along the walk.
func (w *walkState) leads(host string) bool {
	if w.upstrand == nil || w.over {
		return false
	}
	at := w.walk.At()
	return at != nil && strings.EqualFold(at.Name, host)
}

// lost tells whether the upstrand that was named has no upstream at all, which only a published one may.
func (w *walkState) lost() bool { return w.upstrand != nil && !w.over && w.walk.At() == nil }

// siteWalk is the walk of a request as its exchange sees it.
type siteWalk request

// Enter is forward.Walk's. From the second stop on the request is made anew for the upstream: its name is said in the
// Host line.
func (s *siteWalk) Enter(now int64) *balance.Group {
	r := (*request)(s)
	w := &r.walk
	group := w.walk.Enter(now)
	at := w.walk.At()
	if at == nil {
		return nil
	}
	w.stops = append(w.stops, walkStop{name: at.Name, from: len(r.up.trail), to: -1})
	if len(w.stops) > 1 && !r.towards(at) {
		return nil
	}
	return group
}

// towards readies the request for another stop. False: the text of proxy_pass is no target any more.
func (r *request) towards(at *upstrand.Member) bool {
	u := &r.up
	u.answered, u.answer, u.trailer = 0, nil, nil
	body, length := u.out.Body, u.out.Length
	if r.locate(&u.to).what != onward {
		return false
	}
	r.outgoing(&u.out, &u.to)
	if u.out.Body == r.in.Body {
		u.out.Body, u.out.Length = body, length // it may have been taken in whole, and its length be known now
	}
	u.exchange.Opener = r.env.Opener(r.wire(&u.to))
	if r.trace != nil {
		r.step("proxy", at.Name, r.conf.way().target.node)
	}
	return true
}

// After is forward.Walk's.
func (s *siteWalk) After(result upstrand.Result, now int64) bool {
	r := (*request)(s)
	if n := len(r.walk.stops); n > 0 {
		stop := &r.walk.stops[n-1]
		stop.to = len(r.up.trail)
		stop.blank = result.Own || r.conf.way().intercept && result.Status >= 300 && r.intercepts(result.Status)
	}
	return r.walk.walk.After(result, now)
}

// More is forward.Walk's.
func (s *siteWalk) More() bool { return s.walk.walk.More() }

// Stay is forward.Walk's.
func (s *siteWalk) Stay(why upstrand.Final, now int64) { s.walk.walk.Stay(why, now) }

// Leave is forward.Walk's.
func (s *siteWalk) Leave(now int64) { s.walk.walk.Leave(now) }

// walkEnded is what follows when a walk has its result: an answer in place of it, if there is one for its status.
func (r *request) walkEnded(out *forward.Outcome) (o outcome, instead bool) {
	w := &r.walk
	w.over = true
	if out.Answered {
		return outcome{}, false
	}
	to := w.upstrand.intercept(out.Status)
	if to == "" {
		return outcome{}, false
	}
	w.upstrand.State.Intercepted()
	w.stops = append(w.stops, walkStop{name: interceptedStop, from: len(r.up.trail), to: -1})
	r.becomeGet()
	if r.trace != nil {
		r.step("intercept", to, nil)
	}
	if strings.HasPrefix(to, "@") {
		return r.led(named, 0, to, ""), true
	}
	uri, args, _ := strings.Cut(to, "?")
	return r.led(redirected, 0, uri, args), true
}
