package telemetry

import (
	"bytes"
	"context"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/upstrand/upstrand/proxy/forward"
)

// request is the span of a request, and of its attempt at hand. It is forward.Span.
type request struct {
	tracer  trace.Tracer
	ctx     context.Context
	span    trace.Span
	method  string
	begins  bool       // the trace: the client has given none that is valid
	attempt trace.Span // nil: none is open
	tries   int
}

// Start begins a request's span at a moment in Unix nanoseconds. It is proxy.Tracer's.
func (t *Tracer) Start(r *forward.Request, at int64) forward.Span {
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier(r.Fields))
	q := &request{tracer: t.tracer, method: methodOf(r.Method), begins: !trace.SpanContextFromContext(ctx).IsValid()}
	q.ctx, q.span = t.tracer.Start(ctx, q.method, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(time.Unix(0, at)))
	if q.span.IsRecording() {
		q.span.SetAttributes(q.about(r)...)
	}
	return q
}

// carrier gives the fields of a trace context. Several tracestate fields are one list.
type carrier []forward.Field

func (c carrier) Get(name string) string {
	v := forward.Get(c, name)
	if name != "tracestate" {
		return string(v)
	}
	list := string(v)
	for first := true; len(c) > 0; c = c[1:] {
		if strings.EqualFold(string(c[0].Name), name) {
			if !first {
				list += "," + string(c[0].Value)
			}
			first = false
		}
	}
	return list
}

func (c carrier) Set(string, string) {}
func (c carrier) Keys() []string     { return nil }

// methods are those that a span may be named by: there is no end to what clients send.
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "DELETE": true, "CONNECT": true, "OPTIONS": true, "TRACE": true, "PATCH": true, "QUERY": true}

// otherMethod stands for the rest in attributes; as a name it is HTTP, as the conventions want it.
const otherMethod = "_OTHER"

func methodOf(m []byte) string {
	if name := string(m); methods[name] {
		return name
	}
	return "HTTP"
}

// about is what is known of a request at its beginning.
func (q *request) about(r *forward.Request) []attribute.KeyValue {
	path, query, _ := bytes.Cut(r.Target, []byte("?"))
	as := make([]attribute.KeyValue, 0, 16)
	as = append(q.appendMethod(as, r.Method), semconv.URLPath(text(path)), semconv.URLScheme(schemeOf(r)))
	if len(query) > 0 {
		as = append(as, semconv.URLQuery(text(query)))
	}
	host, port := cutHost(text(r.Authority))
	if host != "" {
		as = append(as, semconv.ServerAddress(host))
	}
	if port > 0 {
		as = append(as, semconv.ServerPort(port))
	}
	if r.Remote.IsValid() {
		as = append(as, semconv.NetworkPeerAddress(r.Remote.Unmap().String()), semconv.NetworkPeerPort(int(r.RemotePort)))
	}
	if _, version, ok := strings.Cut(r.Proto, "/"); ok {
		as = append(as, semconv.NetworkProtocolVersion(strings.TrimSuffix(version, ".0")))
	}
	if agent := forward.Get(r.Fields, "User-Agent"); agent != nil {
		as = append(as, semconv.UserAgentOriginal(text(agent)))
	}
	return as
}

func (q *request) appendMethod(as []attribute.KeyValue, method []byte) []attribute.KeyValue {
	if q.method != "HTTP" {
		return append(as, semconv.HTTPRequestMethodKey.String(q.method))
	}
	return append(as, semconv.HTTPRequestMethodKey.String(otherMethod), semconv.HTTPRequestMethodOriginal(text(method)))
}

// longestText bounds what a span keeps of a client's or a backend's text, in bytes: spans wait for a collector by the thousand.
const longestText = 4 << 10

// text is a string of its own, and valid UTF-8: attributes must be, or their whole batch is lost.
func text[T string | []byte](b T) string {
	return strings.ToValidUTF8(strings.Clone(string(b[:min(len(b), longestText)])), "\ufffd")
}

func schemeOf(r *forward.Request) string {
	if r.Secure {
		return "https"
	}
	return "http"
}

// cutHost splits an authority; port 0: it names none.
func cutHost(authority string) (host string, port int) {
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		if n, err := strconv.ParseUint(authority[i+1:], 10, 16); err == nil {
			return authority[:i], int(n)
		}
	}
	return authority, 0
}

// IDs is forward.Span's.
func (q *request) IDs() (traceID, spanID string) {
	c := q.span.SpanContext()
	return c.TraceID().String(), c.SpanID().String()
}

// End is forward.Span's.
func (q *request) End(e forward.SpanEnd) {
	q.endAttempt(e.At)
	if q.span.IsRecording() {
		if e.Route != "" {
			q.span.SetName(q.method + " " + e.Route)
			q.span.SetAttributes(semconv.HTTPRoute(e.Route))
		}
		q.span.SetAttributes(ended(&e)...)
		if e.Status >= 500 || e.Status < 100 {
			q.span.SetStatus(codes.Error, e.Cause)
		}
	}
	q.span.End(trace.WithTimestamp(time.Unix(0, e.At)))
}

// clientGone is nginx's status of a client that did not wait: it got none.
const clientGone = 499

func ended(e *forward.SpanEnd) []attribute.KeyValue {
	as := make([]attribute.KeyValue, 0, 6)
	if e.Status >= 100 && e.Status != clientGone {
		as = append(as, semconv.HTTPResponseStatusCode(e.Status), semconv.HTTPResponseBodySize(int(e.Bytes)))
	}
	switch {
	case e.Status == clientGone:
		as = append(as, semconv.ErrorTypeKey.String("client_gone"))
	case e.Cause != "":
		as = append(as, semconv.ErrorTypeKey.String(e.Cause), keyCause.String(e.Cause))
	case e.Status >= 500:
		as = append(as, semconv.ErrorTypeKey.String(strconv.Itoa(e.Status)))
	}
	if e.Client != (netip.Addr{}) {
		as = append(as, semconv.ClientAddress(e.Client.Unmap().String()))
	}
	if e.Upstream != "" {
		as = append(as, keyUpstream.String(text(e.Upstream)))
	}
	return as
}
