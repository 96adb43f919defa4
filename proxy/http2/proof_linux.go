package http2

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// bytesAcknowledged asks the kernel how many of the bytes that were sent the peer's host has acknowledged; 0: it does not say.
func bytesAcknowledged(raw syscall.RawConn) (n uint64) {
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Bytes_acked
		}
	})
	return n
}
