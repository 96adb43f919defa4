// Package http2 speaks HTTP/2: to clients by a server of its own, over TLS after ALPN chose h2 or in the clear when a
// connection begins with the preface (h2c), and to peers by net/http's client connections, over TLS or by prior knowledge.
//
// Server meets the forwarding core as forward.Client and forward.Source, Pools as forward.Opener and forward.Backend. It
// decides nothing: what a request leads to is said by the forward.Handler that it is given, and what a failure means by
// package forward. It accepts no connection: whoever does hands over those that speak HTTP/2. It pushes nothing, knows no
// priorities (RFC 9113, 5.3.2, has taken them out), and makes no tunnel of a stream: extended CONNECT (WebSocket over HTTP/2) is not
// offered in the settings, and a request that asks for it all the same is reset with PROTOCOL_ERROR.
//
// A session is a client's connection. One goroutine reads frames (golang.org/x/net/http2's Framer) and decodes heads
// (its hpack); each request has a goroutine while it is answered; one writes what has gathered, so that answers which end about
// the same time share a write. Heads are written without a dynamic table, as literals. Windows: 256 KiB for a body, 1 MiB for
// all of a connection; they are given back as bodies are read, so that no client makes us hold more.
//
// What a client can't make us do: run more handlers than streams are allowed, those of streams that it took back
// included; take back, or have refused, 200 requests more than were answered (GOAWAY, ENHANCE_YOUR_CALM); send frames
// without use beyond 1 MiB in a minute and an eighth of what had use; have more than 64 KiB wait to be written, or a head be
// decoded beyond four times its limit. Limits in time cost no timer for each read or write: a coarse sweeper looks at stamps, so that
// a limit may act up to a quarter of it, or 250 ms, late.
//
// A request that is answered before its body came is not reset at once, which clients take for a failure: what still comes, 1 MiB
// beyond its window at most, is dropped for a second, and then the stream is reset with NO_ERROR.
//
// What follows a request's body is told as it came; towards peers, only the fields that a Trailer field announced are sent.
//
// Lock order: Server, then session, then a forward.Presence. Pool and conn share the Pool's; it, Pools' and those of an attempt are taken alone.
package http2
