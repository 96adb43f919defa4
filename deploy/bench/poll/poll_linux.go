package poll

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poller waits for many descriptors. Not safe for concurrent use.
type Poller struct {
	fd     int
	events [512]unix.EpollEvent
}

// New returns an empty Poller.
func New() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	return &Poller{fd: fd}, nil
}

// Close gives the epoll descriptor back; the watched ones stay open.
func (p *Poller) Close() error { return unix.Close(p.fd) }

// Add watches fd from now on, edge-triggered: Wait names it once when bytes, room or an end come. Who is named reads until EAGAIN or a short read. id is what Wait calls
// it. Closing fd ends the watch.
func (p *Poller) Add(fd int, id int32) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: id}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// AddListener watches a listening socket, level-triggered.
func (p *Poller) AddListener(fd int, id int32) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: id}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// Spin is Wait without going to sleep: it looks again and again and lets others run in between. Who sends to a process that sleeps
// pays for waking it, when both are on one machine; that is no part of what a proxy costs.
func (p *Poller) Spin(limit time.Duration, ready func(id int32)) error {
	for began := time.Now(); ; {
		n, err := p.look(0, ready)
		if n > 0 || err != nil || time.Since(began) >= limit {
			return err
		}
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// Wait calls ready for each descriptor that something happened to, after limit at the latest; a negative limit is none. A signal ends it early.
func (p *Poller) Wait(limit time.Duration, ready func(id int32)) error {
	_, err := p.look(limit, ready)
	return err
}

func (p *Poller) look(limit time.Duration, ready func(id int32)) (int, error) {
	var timeout unsafe.Pointer
	if limit >= 0 {
		ts := unix.NsecToTimespec(int64(limit))
		timeout = unsafe.Pointer(&ts)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(timeout), 0, 0)
	if errno == unix.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, fmt.Errorf("epoll_pwait2 (Linux 5.11 or later): %w", errno)
	}
	for i := range int(n) {
		ready(p.events[i].Fd)
	}
	return int(n), nil
}

// Read reads what is there. again: nothing is, now. n == 0 without again or an error is the end of the stream.
func Read(fd int, b []byte) (n int, again bool, err error) {
	r, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return outcome(r, errno)
}

// Discard takes up to limit bytes that are there and does not copy them anywhere.
func Discard(fd int, limit int) (n int, again bool, err error) {
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, uintptr(limit), unix.MSG_TRUNC|unix.MSG_DONTWAIT, 0, 0)
	return outcome(r, errno)
}

// Write writes what there is room for. again: there is none, now.
func Write(fd int, b []byte) (n int, again bool, err error) {
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	return outcome(r, errno)
}

func outcome(r uintptr, errno unix.Errno) (int, bool, error) {
	switch errno {
	case 0:
		return int(r), false, nil
	case unix.EAGAIN:
		return 0, true, nil
	}
	return 0, false, errno
}
