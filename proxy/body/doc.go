// Package body holds a request's body while it is sent on, so that another attempt can send it again: the first bytes in
// memory, what was asked to be kept beyond them in a file without a name, up to a limit for all requests of the process.
//
// It reads the body from a Stream, whatever protocol that speaks, and knows no time limits: the stream has its own.
package body
