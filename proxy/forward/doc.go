// Package forward is the forwarding core: it takes a request, tries the peers of its upstreams one after another, and
// passes the answer on as it comes. It owns what a failure means (Decide), the retry budget, the header fields that
// must not travel from hop to hop, and the order of things: an attempt ends when the last byte of the answer is read,
// before the write that completes the client's answer.
//
// It meets the wire at a boundary of four types (Request, Source, Client, Backend), behind which any HTTP engine can
// stand. It opens no connection, parses no bytes, holds no routing table and imports no engine.
package forward
