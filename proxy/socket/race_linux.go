//go:build race

package socket

import "syscall"

// The race detector takes what is written to a socket and what is read from another one as ordered, by package syscall's
// calls, which package net makes too. (Package unix has an order of its own.)

func read(fd uintptr, b []byte) (uintptr, syscall.Errno) { return counted(syscall.Read(int(fd), b)) }

func write(fd uintptr, b []byte) (uintptr, syscall.Errno) { return counted(syscall.Write(int(fd), b)) }

func writeBoth(fd uintptr, one, two []byte) (uintptr, syscall.Errno) {
	return write(fd, append(append(make([]byte, 0, len(one)+len(two)), one...), two...))
}

func counted(n int, err error) (uintptr, syscall.Errno) {
	errno, _ := err.(syscall.Errno)
	return uintptr(max(n, 0)), errno
}
