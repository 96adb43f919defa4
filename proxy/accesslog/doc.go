// Package accesslog writes access logs as nginx's configuration describes them: values escaped so
// that none can be taken for more than one (Escape), and files that many requests write to at once (Files, Log).
//
// A request never waits for a disk: its line goes into memory, and one goroutine for each file writes it, at once or,
// with a buffer, when that is full or old enough. When a file takes nothing for so long that the memory is full, lines
// are dropped and counted.
//
// It knows no requests and no variables: whoever uses it gives the values. It rotates nothing by itself; Reopen is for
// after somebody else did.
package accesslog
