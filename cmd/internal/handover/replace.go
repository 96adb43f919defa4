package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Socket is a listening socket for the next process, and how that asks for it.
type Socket struct {
	Network, Addr string
	Conn          syscall.Conn // such as a *net.TCPListener; it stays this process's
	Shared        bool         // systemd keeps it
}

// ErrFirstProcess: a container ends with its process 1, whoever else runs in it.
var ErrFirstProcess = errors.New("this is process 1, with which its container ends: start another container beside it (listen … reuseport) or roll out")

// Replace starts the program anew, as it lies on disk now, with the same arguments, environment and standard streams, and
// gives it the sockets. It returns the process once that serves. Should it end before, or ctx, that is an error, nothing of
// it is left, and this process goes on as if nothing had been.
func Replace(ctx context.Context, sockets []Socket) (*os.Process, error) {
	if os.Getpid() == 1 {
		return nil, ErrFirstProcess
	}
	path, err := program()
	if err != nil {
		return nil, err
	}
	ready, tell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	next, err := start(path, tell, sockets)
	_ = tell.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return await(ctx, next, ready)
}

// program is what this process was started as: a link or a name on the path leads to what it means now.
func program() (string, error) {
	if path, err := exec.LookPath(os.Args[0]); err == nil {
		return path, nil
	}
	return os.Executable()
}

// start does not use os.StartProcess: that sets its files to blocking, and a listener with them.
func start(path string, tell *os.File, sockets []Socket) (*os.Process, error) {
	tags := make([]tag, len(sockets))
	files := []uintptr{0, 1, 2, 0}
	defer func() {
		for _, fd := range files[3:] {
			_ = syscall.Close(int(fd))
		}
	}()
	var err error
	if files[3], err = copyOf(tell); err != nil {
		files = files[:3]
		return nil, err
	}
	for i, s := range sockets {
		fd, err := copyOf(s.Conn)
		if err != nil {
			return nil, fmt.Errorf("socket %s: %w", s.Addr, err)
		}
		files = append(files, fd)
		tags[i] = tag{nameOf(s.Network, s.Addr), s.Shared}
	}
	text, err := json.Marshal(tags)
	if err != nil {
		return nil, err
	}
	pid, err := syscall.ForkExec(path, os.Args, &syscall.ProcAttr{Env: append(os.Environ(), variable+"="+string(text)), Files: files})
	if err != nil {
		return nil, err
	}
	return os.FindProcess(pid)
}

// copyOf is another descriptor of the same socket or pipe.
func copyOf(c syscall.Conn) (uintptr, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var (
		fd    int
		duped error
	)
	if err := raw.Control(func(own uintptr) { fd, duped = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return 0, err
	}
	return uintptr(fd), duped
}

// await waits until the next process serves. One that ends, or does not come to it, is none.
func await(ctx context.Context, next *os.Process, ready *os.File) (*os.Process, error) {
	said := make(chan bool, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(ready, int64(len(readyText))))
		said <- string(text) == readyText
	}()
	ended := make(chan string, 1)
	go func() {
		state, err := next.Wait() // also of one that serves: else it could never be told from one that ended
		if err != nil {
			ended <- err.Error()
			return
		}
		ended <- state.String()
	}()
	select {
	case ok := <-said:
		if ok {
			return next, nil
		}
		_ = next.Kill() // it gave the pipe up: at its end, most likely
		return nil, fmt.Errorf("process %d did not come to serve: %s", next.Pid, strings.TrimSpace(<-ended))
	case <-ctx.Done():
		select {
		case ok := <-said:
			if ok { // at the same moment: it may have let clients in
				return next, nil
			}
			said <- ok
		default:
		}
		_ = next.Kill()
		<-ended
		_ = ready.Close() // ends the read under way
		<-said
		return nil, fmt.Errorf("process %d does not serve: %w", next.Pid, context.Cause(ctx))
	}
}
