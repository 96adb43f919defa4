package nethttp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// bytesAcknowledged asks the kernel how many of the bytes that were sent the peer's host has acknowledged.
func bytesAcknowledged(raw syscall.RawConn) (n uint64, ok bool) {
	err := raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			n, ok = info.Bytes_acked, true
		}
	})
	return n, ok && err == nil
}
