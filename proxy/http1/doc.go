// Package http1 is the HTTP/1.1 client side towards peers: pools of kept connections, and attempts over them that meet the
// forwarding core as forward.Opener and forward.Backend.
//
// A request is written as bytes in the order of the fields that it is given, head and small body in one write. Answers
// are read strictly: what RFC 9112 calls invalid, or two readers could take for different things, is no answer. Of that:
// lines end in CR LF; a name is a token right before its colon; no line is folded; no control character but a tab stands in a
// value; there is one Content-Length, or one Transfer-Encoding that says chunked, never both, and no Transfer-Encoding in an
// answer of HTTP/1.0. A connection is kept after a whole answer to a whole request when nothing else came, and before it
// is used again it is looked at: one that the peer closed, or on which it said something unasked, is not written to. Only what
// comes within a moment after that answer may stay unseen, as it does in nginx.
//
// Waiting costs no goroutine: limits are deadlines of the connection, and the end of a client is looked for only when
// an answer takes longer than a moment. A request's body that is not at hand is sent by a goroutine of its own, so that
// an answer may come before it ends.
//
// The package decides nothing: whether another attempt follows, and what a failure means, is said by package forward. It
// knows no routes and no topology; a peer's pool is told when the peer is gone. It speaks no HTTP/2, and no HTTP/1 towards clients.
//
// Lock order: Pools, then shelf, then conn; those of an attempt and of a Pool's open connections are taken alone.
package http1
