package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read reads what is there: EAGAIN without anything, 0 at the end.
func Read(fd uintptr, b []byte) (int, error) {
	for {
		if n, errno := read(fd, b); errno != unix.EINTR {
			return result(n, errno)
		}
	}
}

// Write writes as much as the host takes now: EAGAIN when that is nothing.
func Write(fd uintptr, b []byte) (int, error) {
	for {
		if n, errno := write(fd, b); errno != unix.EINTR {
			return result(n, errno)
		}
	}
}

// WriteBoth is Write of two pieces in one call. Neither is empty.
func WriteBoth(fd uintptr, one, two []byte) (int, error) {
	for {
		if n, errno := writeBoth(fd, one, two); errno != unix.EINTR {
			return result(n, errno)
		}
	}
}

// News tells whether a read would give something, be it the end or an error. It takes nothing away.
func News(fd uintptr) bool {
	var b byte
	for {
		_, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
		if errno != unix.EINTR {
			return errno != unix.EAGAIN
		}
	}
}

// Poll tells whether one of these events, an error or a hang-up is there.
func Poll(fd uintptr, events int16) bool {
	poll := unix.PollFd{Fd: int32(fd), Events: events}
	for {
		var now unix.Timespec // the kernel writes into it
		n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
		if errno != unix.EINTR {
			return n != 0 // also for an error
		}
	}
}

// Splice moves up to n bytes from one descriptor to the other, one of which is a pipe, without copying them: EAGAIN when
// nothing can be moved now, 0 at the end.
func Splice(from, to uintptr, n int) (int, error) {
	for {
		moved, _, errno := syscall.RawSyscall6(unix.SYS_SPLICE, from, 0, to, 0, uintptr(n), unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if errno != unix.EINTR {
			return result(moved, errno)
		}
	}
}

func result(n uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
