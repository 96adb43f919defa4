package http1

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/upstrand/upstrand/proxy/socket"
)

// bytesAcknowledged asks the kernel how many of the bytes that were sent the peer's host has acknowledged, and whether the
// connection is over for it: both sides were closed, or it was reset.
func bytesAcknowledged(raw syscall.RawConn) (n uint64, over, ok bool) {
	err := raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			n, over, ok = info.Bytes_acked, info.State == unix.BPF_TCP_CLOSE, true
		}
	})
	return n, over, ok && err == nil
}

// readable reports whether a read would give something, be it the end.
func readable(raw syscall.RawConn) (yes bool) {
	err := raw.Control(func(fd uintptr) { yes = socket.News(fd) })
	return yes || err != nil
}

// readNow reads what is there; errNothing: nothing is.
func (c *conn) readNow(p []byte) (n int, err error) {
	if !c.direct {
		return 0, errNothing
	}
	failed := c.raw.Control(func(fd uintptr) { n, err = socket.Read(fd, p) })
	switch {
	case failed != nil:
		return 0, failed
	case err == unix.EAGAIN:
		return 0, errNothing
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return max(n, 0), err
}
