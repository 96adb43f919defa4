package simulate

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// visit is one request in the world, from its sending to its answer.
type visit struct {
	world *world
	ctx   context.Context // of its request
	hold  string          // name under which it is held at its server; empty: it isn't
	limit int64           // when it gives up waiting, while it is held

	number int    // of the request in its run, from 1
	name   string // under which it was sent to be held; stays when it is released
	client recorder
	tries  []try
	first  attempt // the first of them, which is nearly always the only one
	picks  []pick  // when somebody watches
	told   int     // of picks
	walk   []walkStep
	stayed bool   // it was held, and that has been told
	done   func() // called when it has its answer; may be nil

	turn chan event // to a held request: go on
	back chan bool  // from it: true, it is held; false, it is done
}

// try is one attempt that reached, or tried to reach, a server.
type try struct {
	addr     string
	server   *server
	peer     *balance.Peer
	result   string    // what came of it: the status, or what went wrong
	does     behaviour // at that moment
	received bool
	method   string // this and what follows: only of a visit whose client keeps what it gets
	target   string
	body     []byte
	reused   bool
}

// pick is one pick of a visit, and how many tries there were before it.
type pick struct {
	explained *balance.Explanation
	upto      int
}

// walkStep is what a walk through an upstrand did, and how many picks there were before it.
type walkStep struct {
	text string
	upto int
}

// event is why a held request goes on.
type event uint8

const (
	released event = iota
	timedOut
)

type visitKey struct{}

// visitOf finds the request that an attempt belongs to; nil for one that the world did not send.
func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// send lets handler serve a request to its end.
func (w *world) send(ctx context.Context, h forward.Handler, r *forward.Request, v *visit) {
	v.world = w
	before := w.current
	w.current = v
	h.Handle(v.context(ctx), r, &v.client)
	w.current = before
}

// context is that of the visit's request, by which attempts find the visit.
func (v *visit) context(of context.Context) context.Context {
	if v.ctx == nil {
		v.ctx = context.WithValue(of, visitKey{}, v)
	}
	return v.ctx
}

// again makes a visit that has ended ready for another request of the same run.
func (v *visit) again() {
	*v = visit{world: v.world, ctx: v.ctx, tries: v.tries[:0]}
}

// running makes v the request that runs, until what it returns is called.
func (w *world) running(v *visit) func() {
	before := w.current
	w.current = v
	return func() { w.current = before }
}

// open sends a request that waits at its server until it is released. It reports whether it is held; else it has ended.
func (w *world) open(ctx context.Context, h forward.Handler, r *forward.Request, v *visit) bool {
	v.world = w
	v.turn, v.back = make(chan event), make(chan bool)
	defer w.running(v)()
	go func() {
		h.Handle(v.context(ctx), r, &v.client)
		if v.done != nil {
			v.done()
		}
		v.back <- false
	}()
	return <-v.back
}

// stay holds the request at its server: everything else goes on until it is woken. It runs in the request's goroutine.
func (v *visit) stay(limit int64) event {
	w := v.world
	v.limit = limit
	w.waiting = append(w.waiting, v)
	v.back <- true
	return <-v.turn
}

// wake lets a held request go on until it is held again or done.
func (w *world) wake(v *visit, e event) {
	if i := slices.Index(w.waiting, v); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
	defer w.running(v)()
	v.turn <- e
	<-v.back
}

// finish lets all held requests give up, so that nothing is left of them.
func (w *world) finish() {
	for len(w.waiting) > 0 {
		v := w.waiting[0]
		v.hold = ""
		w.wake(v, released)
	}
}

// peers is the servers that were tried, by the text of their lines: a,b; - when there was none.
func (v *visit) peers() string {
	if len(v.tries) == 0 {
		return "-"
	}
	if len(v.tries) == 1 {
		return v.tries[0].peer.ID()
	}
	ids := make([]string, len(v.tries))
	for i := range v.tries {
		ids[i] = v.tries[i].peer.ID()
	}
	return strings.Join(ids, ",")
}

// status is that of the answer; 0 when the connection was closed without one.
func (v *visit) status() string { return strconv.Itoa(v.client.status) }

// held finds the requests of that name, in the order in which they came.
func (w *world) held(name string) []*visit {
	var out []*visit
	for _, v := range w.waiting {
		if v.hold == name {
			out = append(out, v)
		}
	}
	return out
}
