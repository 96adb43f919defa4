// Package forward is the forwarding core: it takes a request, tries the peers of an upstream one after another, or those of
// several along a Walk, and passes the answer on as it comes. It owns what a failure means (Decide), the retry budget, and
// the order of things: an attempt ends when the last byte of the answer is read, before the write that completes the
// client's answer.
//
// Whoever runs an Exchange with Hooks makes the request for backends, filters answers and makes those of errors; package
// site does, as a file says. What follows is the way of published routes, which have no Hooks.
//
// Fields of one connection don't travel on. Who asks is told to backends in X-Forwarded-For, -Proto and -Host and X-Real-IP,
// always written by Outgoing: the client's address, scheme and Host; and in Forwarded (RFC 7239) and Via where that is
// asked for. From a client that the caller trusts to be a proxy, -For and Forwarded are continued, and -Proto, -Host and
// X-Real-IP are kept; without an X-Real-IP that is an address it is the last of -For. From any
// other, what it says in those, in any other X-Forwarded-*, in Forwarded or in X-Real-IP does not reach a backend. From
// nobody a field with an underscore in its name does: many backends take X_Forwarded_For for X-Forwarded-For. The same
// holds for fields after the body. Nothing else is dropped: a backend must not believe fields of its own invention from
// clients (say True-Client-IP) without a proxy in front that sets them.
//
// It meets the wire at a boundary of four types (Request, Source, Client, Backend), behind which any HTTP engine can
// stand. It opens no connection, parses no bytes, holds no routing table and imports no engine.
package forward
