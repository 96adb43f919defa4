// Package telemetry makes OpenTelemetry spans of requests: one of kind server for each request, and one of kind client for
// each attempt below it, with the attributes of the semantic conventions for HTTP. A client's W3C trace context
// (traceparent, tracestate) is taken over, and each backend gets that of its attempt. Spans go to a collector by
// OTLP over HTTP, in batches, without a request ever waiting.
//
// Who is not followed costs a nil check in the forwarding core; without a Tracer the fields of a trace context travel
// untouched. It makes no metrics and no logs.
package telemetry
