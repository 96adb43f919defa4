// Package proxy serves requests by a published topology, by a configuration file, or by both: an immutable routing table
// behind one atomic pointer, and beside it the live state of peers and upstrands.
//
// Handle is where a request comes in from the engine (package front). By a topology it finds a route; by a file it goes
// through the file's servers and locations (package site), which then take every request. Both lead to an upstream, or
// along an upstrand from one upstream to the next (package upstrand); package balance picks the peer, package forward
// carries the request there and owns what a failure means, package http1 speaks to the peer.
//
// A request loads the table once and keeps it; only when it finds nobody left it goes on with what its upstream or upstrand
// is in the table of then, or, with a file that has neither any more and nothing sent yet, is routed anew by that file.
// Apply, Use and Renew build the next table whole before it is stored, and touch only what changed:
// an unchanged upstream keeps its group, an unchanged process its connections and counters, an upstrand its cursor and
// blacklist. A site that was replaced is closed when its last request has ended.
//
// It does not know where topologies come from (package agent does) nor how files are written (confgen/dialect does), nor
// Kafka, the registry or heartbeats, and it waits for none of them: without news it serves the last topology for ever.
package proxy
