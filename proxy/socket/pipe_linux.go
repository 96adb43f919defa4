package socket

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// Pipe is where bytes wait between two sockets that are spliced.
type Pipe struct{ r, w int }

// PipeSize is about how many bytes a pipe holds.
const PipeSize = 256 << 10

// pipesKept are kept for the next that ask; others are closed.
const pipesKept = 64

// pipes are empty ones that nobody uses.
var pipes struct {
	mu   sync.Mutex
	kept []*Pipe
}

// TakePipe gives an empty pipe. It fails when there are no descriptors left.
func TakePipe() (*Pipe, error) {
	pipes.mu.Lock()
	if n := len(pipes.kept) - 1; n >= 0 {
		p := pipes.kept[n]
		pipes.kept = pipes.kept[:n]
		pipes.mu.Unlock()
		return p, nil
	}
	pipes.mu.Unlock()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, err
	}
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, PipeSize) // else it has the system's size, and does as well
	return &Pipe{fds[0], fds[1]}, nil
}

// Put gives a pipe back; empty tells whether nothing is left in it.
func (p *Pipe) Put(empty bool) {
	if empty {
		pipes.mu.Lock()
		if len(pipes.kept) < pipesKept {
			pipes.kept = append(pipes.kept, p)
			pipes.mu.Unlock()
			return
		}
		pipes.mu.Unlock()
	}
	_ = errors.Join(unix.Close(p.r), unix.Close(p.w))
}

// Fill moves up to n bytes from a socket into the pipe: EAGAIN when none are there now, 0 at the end.
func (p *Pipe) Fill(from uintptr, n int) (int, error) { return Splice(from, uintptr(p.w), n) }

// Drain moves up to n bytes out of the pipe into a socket: EAGAIN when it takes none now.
func (p *Pipe) Drain(to uintptr, n int) (int, error) { return Splice(uintptr(p.r), to, n) }
