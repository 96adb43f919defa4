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
//
// As many requests as there are clients wait for their backends at once, and by the time of an answer the memory of each has
// left the near caches. So what plain requests touch lies together, and what they have no use for is not even cleared. The
// memory is cleared when it is taken, not when it is given back: what was used before the wait is not looked at again.
type request struct {
	busy    bool // serves a request: its memory is nobody else's
	pooled  bool // goes back to requests
	counted bool // limits know something of it
	walks   bool // a walk has begun
	odd     bool // there is something in unusual
	passage
	sent sentState // of the answer
	place
	script.State
	up      upstreamState // of the upstreams
	unusual unusual
	limits  limitState
	walk    walkState // through an upstrand
}

// passage is what begins anew with each request, as place does; the other parts of a request keep the memory that they have.
// It is looked at when the answer is there, too.
type passage struct {
	location *location // nil: none was found
	conf     *settings // in force
	site     *Site
	env      Env
	in       *forward.Request // as the client sent it
	client   forward.Client
	status   int          // of the answer, 0 before
	began    int64        // Env.Now
	at       int64        // likewise, since anything was last waited for; 0: unknown
	ended    int64        // likewise, when the answer was given; 0: it is not yet
	span     forward.Span // nil: nobody follows
	trace    func(Step)
	remote   netip.Addr // the client, or whom a trusted proxy says it is

	remotePort uint16
	wish       wish // what the client says of its connection
	head       bool // in.Method is HEAD
	real       bool // a trusted proxy said who the client is
	excepted   bool // by the location's limit_except
	whole      bool // uri and args are still those of in.Target
	quoted     bool // in.Target's path had escapes
	plus       bool // … or a +
	internal   bool // came here by an internal redirect
	changed    bool // a rewrite changed uri since the location was found
	stayed     bool // a break kept it in its location: proxy_pass does not replace the location's name
	inError    bool // an error page is being made: no second one follows unless they may recur
	last       bool // no other request follows on the connection

	errStatus int // status that an error page is given with; 0: its own
}

// place is where a request is led to, and as what.
type place struct {
	server  *server
	method  []byte // becomes GET on the way to an error page
	host    string // as $host: lower case, without port
	uri     string // the path, decoded and normalised
	args    string // behind the ?, as they came
	changes int    // internal redirects that are left, and one more
	why     string // of an answer of our own, for logs; empty: its status says it
}

// unusual is what few requests need.
type unusual struct {
	leads     string    // Location of the answer; empty: none
	next      whereto   // of the outcome at hand
	execution execution // of the program that runs
	id        string    // of $request_id, made when it is asked for
}

// rare is where unusual is written.
func (r *request) rare() *unusual {
	r.odd = true
	return &r.unusual
}

var requests = sync.Pool{New: func() any { return &request{pooled: true} }}

// takeRequest begins a request. Now is a reading of env's clock that was just made; 0: there is none.
func takeRequest(s *Site, env Env, in *forward.Request, c forward.Client, now int64) *request {
	r := memoryFor(in)
	r.begin(s)
	r.env, r.in, r.client = env, in, c
	r.method, r.head = in.Method, string(in.Method) == "HEAD"
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
	if in.Scratch == nil {
		return requests.Get().(*request)
	}
	if *in.Scratch == nil {
		r := new(request)
		*in.Scratch = r
		return r
	}
	if r, ok := (*in.Scratch).(*request); ok && !r.busy {
		return r
	}
	return requests.Get().(*request)
}

// begin makes the memory of another request ready for one of this site.
func (r *request) begin(s *Site) {
	r.busy = true
	r.passage = passage{}
	r.place = place{}
	r.site = s
	r.sent.begin(r)
	r.up.begin()
	r.Begin(s.slots)
	if r.odd {
		r.unusual, r.odd = unusual{}, false
	}
	if r.walks {
		r.walk.reset()
		r.walks = false
	}
	if r.counted {
		r.limits.reset()
		r.counted = false
	}
}

// release lets the memory be another request's. What else was taken for this one goes back.
func (r *request) release() {
	r.sent.release()
	r.up.release()
	r.leave()
	r.busy = false
	if r.pooled {
		requests.Put(r)
	}
}

// leave gives back the places that the request takes in limits, if it takes any.
func (r *request) leave() {
	if r.counted {
		r.limits.leave()
	}
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
	status int      // failed
	to     *whereto // redirected, named; failed: the Location; nil: nowhere
}

// whereto is where an outcome leads.
type whereto struct {
	to   string // redirected: /path, as it is matched; named: @name
	args string // redirected
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

// led is an outcome that leads somewhere.
func (r *request) led(what verdict, status int, to, args string) outcome {
	next := &r.rare().next
	*next = whereto{to, args}
	return outcome{what, status, next}
}

// location is the Location of a failed outcome; empty: it has none.
func (o *outcome) location() string {
	if o.to == nil {
		return ""
	}
	return o.to.to
}
