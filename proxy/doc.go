// Package proxy serves requests by a topology: an immutable routing table behind one atomic pointer, the live state of
// peers beside it, and the way from a request to its answer through packages balance (which peer), forward (what a
// failure means) and nethttp (the wire).
//
// A request loads the table once and keeps it. Apply builds the next table whole before it is stored, and touches only
// what changed: an unchanged upstream keeps its group, an unchanged process its connections and counters.
//
// It does not know where topologies come from (package agent does), nor Kafka, the registry or heartbeats, and it waits
// for none of them: without news it serves the last topology for ever.
package proxy
