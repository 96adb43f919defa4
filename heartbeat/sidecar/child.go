package sidecar

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// running is a command at work. It is started and waited for on one locked thread: on Linux the kernel kills it when the
// thread that started it ends (ownGroup), and Go ends idle threads when it likes.
type running struct {
	cmd    *exec.Cmd
	done   chan struct{} // closed when the command has ended and result is set
	result error
}

func (r *running) start() error {
	r.done = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := r.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		r.result = r.cmd.Wait()
		close(r.done)
	}()
	return <-started
}

// child is the service's process.
type child struct{ running }

func startChild(cfg Config) (*child, error) {
	cmd := exec.Command(cfg.Command[0], cfg.Command[1:]...)
	cmd.Env, cmd.Dir = cfg.Env, cfg.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = cfg.Stdin, cfg.Stdout, cfg.Stderr
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = time.Second // a grandchild that holds our pipes must not hold us
	c := &child{running{cmd: cmd}}
	if err := c.start(); err != nil {
		return nil, &ExitError{Code: startCode(err), Err: fmt.Errorf("start %s: %w", cfg.Command[0], err)}
	}
	return c, nil
}

// startCode is the exit code that shells give for a command that could not be started.
func startCode(err error) int {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return 127
	default:
		return 126
	}
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// signal passes a signal on to the child itself; what it means to its own children is for it to know.
func (c *child) signal(sig os.Signal) { _ = c.cmd.Process.Signal(sig) } // fails only when the child has ended, which is seen elsewhere

// kill ends the child and everything in its process group.
func (c *child) kill() { _ = killGroup(c.pid()) }

// err tells how the child ended: nil for exit code 0. It must have ended.
func (c *child) err() error {
	if c.result == nil || errors.Is(c.result, exec.ErrWaitDelay) {
		return nil // the latter: it ended well, and a grandchild held its output open
	}
	var exit *exec.ExitError
	if !errors.As(c.result, &exit) {
		return &ExitError{Code: 1, Err: fmt.Errorf("wait for %s: %w", c.cmd.Path, c.result)}
	}
	code := exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return &ExitError{Code: code, Err: fmt.Errorf("%s: %w", c.cmd.Path, exit)}
}

// ExitError is how the child ended when that was not with exit code 0.
type ExitError struct {
	Code int // the child's exit code, 128 + the signal that ended it, 126 or 127 when it could not be started
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is what a process that ran a Sidecar should exit with: 0 for nil, the child's code for an *ExitError, otherwise
// 1.
func ExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	default:
		return 1
	}
}

// signals is what comes to our process and concerns a child: with none, signals keep their usual effect.
func (s *Sidecar) signals() (<-chan os.Signal, func()) {
	if s.cfg.Signals != nil || len(s.cfg.Command) == 0 {
		return s.cfg.Signals, func() {}
	}
	c := make(chan os.Signal, 16)
	signal.Notify(c, append(append([]os.Signal(nil), passing...), ending...)...)
	return c, func() { signal.Stop(c) }
}
