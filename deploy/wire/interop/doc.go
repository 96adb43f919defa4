// Package interop runs gRPC's interoperability client and server with the proxy between them: over TLS on both sides, and in
// the clear. It is a module of its own, so that nothing else depends on gRPC.
package interop
