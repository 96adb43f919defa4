//go:build !race

package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls for sockets are quicker than those for files by about a tenth of a microsecond.

func read(fd uintptr, b []byte) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return n, errno
}

func write(fd uintptr, b []byte) (uintptr, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return n, errno
}

func writeBoth(fd uintptr, one, two []byte) (uintptr, syscall.Errno) {
	pieces := [2]unix.Iovec{{Base: unsafe.SliceData(one)}, {Base: unsafe.SliceData(two)}}
	pieces[0].SetLen(len(one))
	pieces[1].SetLen(len(two))
	n, _, errno := syscall.RawSyscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&pieces)), uintptr(len(pieces)))
	return n, errno
}
