package http2

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
)

// watched is the socket of a connection to a peer. It knows what can prove that a request was never looked at: the peer closed
// in good order (a FIN, which acknowledges all that came before it) and its host had acknowledged nothing of the request. A
// reset proves nothing.
type watched struct {
	net.Conn
	wrote atomic.Int64  // bytes that were given to the kernel
	acked atomic.Uint64 // bytes acknowledged when the FIN was read; 0: none was, or nobody knows
	cut   atomic.Bool   // the connection was reset, or something else broke it
}

// Read is net.Conn's.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.ended(err)
	}
	return n, err
}

func (w *watched) ended(err error) {
	if !errors.Is(err, io.EOF) {
		w.cut.Store(true)
		return
	}
	if s, ok := w.Conn.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			w.acked.Store(bytesAcknowledged(raw))
		}
	}
}

// Write is net.Conn's.
func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.wrote.Add(int64(n))
	if err != nil {
		w.cut.Store(true)
	}
	return n, err
}

// unread tells whether it is proven that the peer's host took in nothing that was written after so many bytes. The kernel
// counts the SYN as one.
func (w *watched) unread(after int64) bool {
	acked := w.acked.Load()
	return acked > 0 && acked <= uint64(after)+1 && !w.cut.Load()
}
