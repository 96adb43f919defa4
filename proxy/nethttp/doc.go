// Package nethttp is the server side that stands on net/http: a server whose requests meet the forwarding core as
// forward.Client and forward.Source.
//
// It decides nothing: what a request leads to is said by the forward.Handler that it is given.
//
// What net/http takes away from what nginx does: the order of a request's fields and the case of their names; a head that is too
// large as a whole is answered by net/http itself, with 431 in its own words, and so is one that it can't parse, with
// 400; bytes of a head are counted together, so that limits of single lines are looked at only when all of it is
// there; the answer's first line names the client's version, and Date is always there. It hides the Transfer-Encoding of a
// request of HTTP/1.0, so that the connection of such a client is never kept.
package nethttp
