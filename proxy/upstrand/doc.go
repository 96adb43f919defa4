// Package upstrand walks upstrands: which upstream a request goes to first, which one after that, and when it has its
// answer. It holds what an upstrand remembers on this node (where the next request starts, which upstreams are
// blacklisted, what was counted) and carries it over from one configuration to the next.
//
// A State belongs to an upstrand's name, a Walk to one request. The rules are those of nginx's combined-upstreams module
// as recorded, but that a blacklisted upstream is really passed over, and that each list is gone around at most once.
//
// It sends nothing and knows no HTTP but statuses: forward makes the passes through upstreams, and time is an argument.
package upstrand
