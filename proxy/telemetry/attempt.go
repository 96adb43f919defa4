package telemetry

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/upstrand/upstrand/proxy/forward"
)

var nameTraceparent, nameTracestate = []byte("traceparent"), []byte("tracestate")

// Attempt is forward.Span's: it begins the attempt's span, and tells the backend of it.
func (q *request) Attempt(r *forward.Request, t *forward.Try) {
	q.endAttempt(t.Began())
	_, q.attempt = q.tracer.Start(q.ctx, q.method, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(time.Unix(0, t.Began())))
	forward.SetField(r, nameTraceparent, traceparent(q.attempt.SpanContext()))
	if q.begins {
		forward.SetField(r, nameTracestate, nil) // it belongs to no trace
	}
	if q.attempt.IsRecording() {
		q.attempt.SetAttributes(q.aboutAttempt(r, t)...)
	}
	q.tries++
}

// traceparent is the field of that name, version 00.
func traceparent(c trace.SpanContext) []byte {
	id, span := c.TraceID(), c.SpanID()
	b := make([]byte, 0, 55)
	b = append(appendHex(append(b, "00-"...), id[:]), '-')
	b = append(appendHex(b, span[:]), '-')
	return appendHex(b, []byte{byte(c.TraceFlags())})
}

func appendHex(b, bytes []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range bytes {
		b = append(b, digits[c>>4], digits[c&15])
	}
	return b
}

func (q *request) aboutAttempt(r *forward.Request, t *forward.Try) []attribute.KeyValue {
	as := make([]attribute.KeyValue, 0, 10)
	as = append(q.appendMethod(as, r.Method), keyUpstream.String(text(t.Upstream)), keyPeer.String(text(t.Peer.ID())),
		semconv.URLFull(t.Peer.Scheme()+"://"+t.Peer.Addr()+text(r.Target)))
	if at, err := netip.ParseAddrPort(t.Peer.Addr()); err == nil {
		as = append(as, semconv.ServerAddress(at.Addr().String()), semconv.ServerPort(int(at.Port())),
			semconv.NetworkPeerAddress(at.Addr().String()), semconv.NetworkPeerPort(int(at.Port())))
	}
	if q.tries > 0 {
		as = append(as, semconv.HTTPRequestResendCount(q.tries))
	}
	return as
}

// Attempted is forward.Span's.
func (q *request) Attempted(t *forward.Try, err error) {
	if q.attempt == nil {
		return
	}
	if q.attempt.IsRecording() {
		q.attempt.SetAttributes(attempted(t, err)...)
		if err != nil || t.Status >= 400 {
			q.attempt.SetStatus(codes.Error, reasonOf(err))
		}
		if t.Header >= 0 {
			q.attempt.AddEvent("head", trace.WithTimestamp(time.Unix(0, t.Began()+int64(t.Header))))
		}
	}
	end := t.Began()
	if t.Response > 0 {
		end += int64(t.Response)
	}
	q.endAttempt(end)
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return text(err.Error())
}

func attempted(t *forward.Try, err error) []attribute.KeyValue {
	as := make([]attribute.KeyValue, 0, 3)
	if t.Header >= 0 { // else the status says what we made of it
		as = append(as, semconv.HTTPResponseStatusCode(t.Status), semconv.HTTPResponseBodySize(int(t.Length)))
	}
	switch {
	case err != nil:
		as = append(as, semconv.ErrorTypeKey.String(classOf(err)))
	case t.Status >= 400:
		as = append(as, semconv.ErrorTypeKey.String(strconv.Itoa(t.Status)))
	}
	return as
}

// classOf is one of a few words.
func classOf(err error) string {
	var e *forward.Error
	switch {
	case errors.As(err, &e):
		return e.Class.String()
	case errors.Is(err, context.Canceled):
		return "client_gone"
	}
	return "error"
}

// endAttempt ends the attempt's span if one is open.
func (q *request) endAttempt(at int64) {
	if q.attempt != nil {
		q.attempt.End(trace.WithTimestamp(time.Unix(0, at)))
		q.attempt = nil
	}
}
