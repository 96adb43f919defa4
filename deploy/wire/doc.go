// Package wire shows what the proxy takes from a wire and what it puts on one, byte by byte: rows of raw bytes with what must come of
// them (testdata/*.rows), WebSockets, behaviours of a reverse proxy, chaos on both sides, and slow clients. Its non-test files are
// what these tests share with the differential fuzzer (folder differ): a recording backend that knows no leniency, a raw client, and
// the proxy in this process.
//
// `go test` runs a form of a few seconds against a proxy in the test's process; `make conformance-http` the long form against the built
// program as well. It is no load test, and it judges no balancing: that is what deploy/conformance and deploy/compare are for.
package wire
