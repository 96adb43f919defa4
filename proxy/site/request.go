package site

import (
	"net/netip"
	"sync"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/script"
)

// maxChanges is how often a request may be redirected internally.
const maxChanges = 10

// request is one request on its way through a Site. It belongs to one goroutine and is used again afterwards: nothing
// may hold it, or text of its head, when Handle has returned.
type request struct {
	script.State
	passage
	sent sentState     // of the answer
	up   upstreamState // of the upstreams
	walk walkState     // through an upstrand

	limits limitState

	finished Finished // only while it is shown
}

// passage is what begins anew with each request; the other parts of a request keep the memory that they have.
type passage struct {
	site   *Site
	env    Env
	in     *forward.Request // as the client sent it
	client forward.Client

	server   *server
	location *location // nil: none was found
	conf     *settings // in force
	excepted bool      // by the location's limit_except
	trace    func(Step)
	span     forward.Span // nil: nobody follows

	method []byte // becomes GET on the way to an error page
	host   string // as $host: lower case, without port
	uri    string // the path, decoded and normalised
	args   string // behind the ?, as they came
	whole  bool   // uri and args are still those of in.Target
	quoted bool   // in.Target's path had escapes
	plus   bool   // … or a +

	remote     netip.Addr // the client, or whom a trusted proxy says it is
	remotePort uint16
	real       bool // a trusted proxy said who the client is

	internal  bool   // came here by an internal redirect
	changed   bool   // a rewrite changed uri since the location was found
	stayed    bool   // a break kept it in its location: proxy_pass does not replace the location's name
	changes   int    // internal redirects that are left, and one more
	inError   bool   // an error page is being made: no second one follows unless they may recur
	last      bool   // no other request follows on the connection
	why       string // of an answer of our own, for logs; empty: its status says it
	errStatus int    // status that an error page is given with; 0: its own

	leads     string    // Location of the answer; empty: none
	execution execution // of the program that runs

	began  int64  // Env.Now
	at     int64  // likewise, since anything was last waited for; 0: unknown
	ended  int64  // likewise, when the answer was given; 0: it is not yet
	status int    // of the answer, 0 before
	id     string // of $request_id, made when it is asked for
}

var requests = sync.Pool{New: func() any { return new(request) }}

// takeRequest begins a request. Now is a reading of env's clock that was just made; 0: there is none.
func takeRequest(s *Site, env Env, in *forward.Request, c forward.Client, now int64) *request {
	r := memoryFor(in)
	r.Begin(s.slots)
	r.site, r.env, r.in, r.client = s, env, in, c
	r.method = in.Method
	r.remote, r.remotePort = in.Remote, in.RemotePort
	r.changes = maxChanges + 1
	if now == 0 {
		now = env.Now()
	}
	r.began, r.at = now, now
	return r
}

// memoryFor is what the engine keeps for us beside its own memory of a request, or any other's.
func memoryFor(in *forward.Request) *request {
	if in.Scratch != nil {
		if r, ok := (*in.Scratch).(*request); ok {
			*in.Scratch = nil
			return r
		}
	}
	return requests.Get().(*request)
}

// waited forgets the last reading of the clock: time may have passed.
func (r *request) waited() { r.at = 0 }

// moment is the present: what the clock read last, as long as nothing was waited for since.
func (r *request) moment() int64 {
	switch {
	case r.at != 0:
		return r.at
	case r.up.exchange.At != 0: // it goes on, and has asked lately
		return r.up.exchange.At
	}
	return r.env.Now()
}

// now is the present, or the moment at which the answer had been given.
func (r *request) now() int64 {
	if r.ended != 0 {
		return r.ended
	}
	return r.env.Now()
}

// release makes the request ready for another one.
func (r *request) release() {
	r.sent.reset() // first: a compressor that was not ended goes back by the settings in force
	r.up.reset()
	r.walk.reset()
	r.limits.leave()
	r.limits.reset()
	var keep *any
	if r.in != nil { // none in a handshake
		keep = r.in.Scratch
	}
	r.passage = passage{}
	if keep != nil && *keep == nil {
		*keep = r
		return
	}
	requests.Put(r)
}

// keptFields is for how many fields memory that is used again keeps room.
const keptFields = 256

// emptied is memory for the fields of another message.
func emptied[F ~[]forward.Field](fields F) F {
	if cap(fields) > keptFields {
		return nil
	}
	clear(fields)
	return fields[:0]
}

// template is a text with variables of a request.
type template = script.Template[*request]

// finalStatus is the status to answer with when the content has this one: an error page may be given with another.
func (r *request) finalStatus(status int) int {
	if r.errStatus != 0 {
		return r.errStatus
	}
	return status
}

// outcome is what a handler, or a phase, came to. The zero value: the answer has been given.
type outcome struct {
	what   verdict
	status int    // failed
	to     string // redirected: /path, as it is matched; named: @name
	args   string // redirected
}

type verdict uint8

const (
	answered   verdict = iota // the client has its answer, or is gone
	onward                    // nothing decided: the next phase
	failed                    // answer with status, by error_page if there is one
	redirected                // serve another path instead
	named                     // go on in a named location
	cut                       // close the connection without an answer
	moved                     // for the site of now to answer
)

func fail(status int) outcome { return outcome{what: failed, status: status} }
