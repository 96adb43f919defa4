// Package h2spec runs h2spec, a conformance suite for HTTP/2 servers, against the proxy: over TLS and in the clear. It is a
// module of its own, so that nothing else depends on what the suite needs.
package h2spec
