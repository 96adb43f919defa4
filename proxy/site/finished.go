package site

import (
	"net/netip"
	"strconv"

	"github.com/upstrand/upstrand/proxy/forward"
)

// Finished is a request that has its answer, for those who tell of single requests. What it leads to is used again when
// whoever was shown it returns.
type Finished struct {
	Env      Env              // by which it was served
	In       *forward.Request // as the client sent it
	Remote   netip.Addr       // the client, or whom a trusted proxy says it is
	Status   int              // of the answer; 499: the client was gone before
	Bytes    int64            // of its body, as sent
	Began    int64            // reading of Env's clock
	Ended    int64
	Trail    forward.Trail // its attempts
	Exchange *forward.Outcome
	Span     forward.Span // follows it; nil: nobody does
	Location string       // name of the one that it was served by
}

// Versioned is an Env that belongs to a published topology.
type Versioned interface {
	// Version is that topology's; 0: there is none.
	Version() uint64
}

// Who follows a request for traces, and what its topology is. Both are empty where there is none.
var topologyVariables = definitions{
	"otel_trace_id": maybe(func(r *request) string { id, _ := r.spanIDs(); return id }),
	"otel_span_id":  maybe(func(r *request) string { _, id := r.spanIDs(); return id }),
	"topology_version": maybe(func(r *request) string {
		if v, ok := r.env.(Versioned); ok && v.Version() > 0 {
			return strconv.FormatUint(v.Version(), 10)
		}
		return ""
	}),
}

func (r *request) spanIDs() (traceID, spanID string) {
	if r.span == nil {
		return "", ""
	}
	return r.span.IDs()
}

// done is the request as it is shown to who asked for it.
func (r *request) done() Finished {
	out := r.up.outcome()
	if out.Cause == "" {
		out.Cause = r.cause()
	}
	name := ""
	if r.location != nil {
		name = r.location.name
	}
	return Finished{r.env, r.in, r.remote, r.status, r.sent.bytes, r.began, r.ended, r.up.trail, out, r.span, name}
}
