package forward

import "net/netip"

// Span follows one request, for traces. Its methods are called from the request's goroutine; what it is given belongs to
// the exchange and is used again.
type Span interface {
	// Attempt comes before anything of an attempt is sent. It may change r's fields, which are the exchange's own.
	Attempt(r *Request, t *Try)
	// Attempted comes when the attempt is over, and may come more than once: only the first time counts. Err is nil when the peer
	// answered.
	Attempted(t *Try, err error)
	// IDs are the trace and the span of the request, in hex.
	IDs() (trace, span string)
	// End comes last.
	End(e SpanEnd)
}

// SpanEnd is what became of a request.
type SpanEnd struct {
	At       int64 // Unix nanoseconds
	Status   int   // of the answer; 499: the client was gone before
	Bytes    int64 // of its body
	Route    string
	Upstream string // last one tried; empty: none
	Cause    string // as Outcome's
	Client   netip.Addr
}

// Began is when the attempt began, in Unix nanoseconds.
func (t *Try) Began() int64 { return t.began }

// SetField gives a field of r that value, in place of all others of its name; nil: none stays. R's fields must be the
// caller's own.
func SetField(r *Request, name, value []byte) {
	fields, found := r.Fields[:0], false
	for _, f := range r.Fields {
		switch {
		case !is(f.Name, string(name)):
			fields = append(fields, f)
		case !found && value != nil:
			found = true
			fields = append(fields, Field{f.Name, value})
		}
	}
	if !found && value != nil {
		fields = append(fields, Field{name, value})
	}
	r.Fields = fields
}
