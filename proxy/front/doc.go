// Package front is the side towards clients: it takes connections, reads the requests of HTTP/1 on them and has a
// forward.Handler answer them. Connections that speak HTTP/2 are handed to somebody else (Options.HTTP2).
//
// It decides nothing: what a request leads to is said by the handler. What RFC 9112 calls invalid never gets further than to
// an answer: the handler is given such a request with Invalid set, so that errors look and are logged like all others, and the
// connection ends behind it.
//
// A connection has one goroutine, and memory for a request (work) only while there is something to do on it. On Linux it waits
// before it reads: all is done within one call of RawConn.Read, whose callback reads what there is, serves it, and waits again
// by returning false. Nobody may read from the socket meanwhile, nor close it; so a request that may have to read from it
// (a body that is still coming, an upgrade) is served between two such calls, and others end a wait by a deadline that is over,
// or shut the socket down. TLS is read in the same way. Elsewhere, and on what is no socket, ordinary reads do.
//
// Limits in time cost no timer for a request: each connection has a stamp of when it began to wait for what, and a sweeper
// looks at all of them a few times a second. A stamp that is dead is never anything else again.
//
// Lock order: Server, then a forward.Presence. client.talk is taken alone.
package front
