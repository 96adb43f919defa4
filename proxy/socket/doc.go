// Package socket makes system calls on sockets that never wait, from inside a callback of syscall.RawConn, where the
// descriptor is known to be open. The scheduler is not told of them: that costs about as much as a pick of a peer, and an idle
// processor could be taken away meanwhile; a call that waits would hold everything up instead, so that the sockets must be
// non-blocking, as Go's are.
//
// It is for Linux alone, and holds nothing: whoever waits, or keeps a connection, is package net's user.
package socket
