package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Proc is a program that can be started again and again with the same arguments. Its output goes to one file that
// later starts append to. Methods are safe for concurrent use.
type Proc struct {
	Name string
	Path string
	Args []string
	Env  []string // added to the environment of this process
	Cred *syscall.Credential
	Log  string // file for stdout and stderr

	mu     sync.Mutex
	cmd    *exec.Cmd
	done   chan struct{} // closed when cmd has ended
	err    error         // what cmd ended with; read after done
	paused bool
}

// Start runs the program; the one before must have ended.
func (p *Proc) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && !ended(p.done) {
		return fmt.Errorf("rig: %s runs already", p.Name)
	}
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("rig: log of %s: %w", p.Name, err)
	}
	defer out.Close()
	fmt.Fprintf(out, "--- rig: start %s %s %q\n", time.Now().Format(time.TimeOnly), filepath.Base(p.Path), p.Args)
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env = append(environment(), p.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = attributes(p.Cred)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("rig: start %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done, p.err, p.paused = cmd, done, nil, false
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(done)
	}()
	return nil
}

// environment is ours without the variables that steer tests, which are no business of the programs under test.
func environment() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "UPSTRAND_") {
			out = append(out, v)
		}
	}
	return out
}

func ended(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Alive reports whether the program runs, paused or not.
func (p *Proc) Alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil && !ended(p.done)
}

// Pid returns the process id of the last start, 0 before it.
func (p *Proc) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

func (p *Proc) signal(sig syscall.Signal) (chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || ended(p.done) {
		return nil, fmt.Errorf("rig: %s: %v: not running", p.Name, sig)
	}
	switch sig {
	case syscall.SIGSTOP:
		p.paused = true
	case syscall.SIGCONT:
		p.paused = false
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		return nil, fmt.Errorf("rig: %s: %v: %w", p.Name, sig, err)
	}
	return p.done, nil
}

// Pause stops the program as a hung machine would (SIGSTOP).
func (p *Proc) Pause() error { _, err := p.signal(syscall.SIGSTOP); return err }

// Resume ends a Pause.
func (p *Proc) Resume() error { _, err := p.signal(syscall.SIGCONT); return err }

// Hangup tells the program to read its configuration again (SIGHUP).
func (p *Proc) Hangup() error { _, err := p.signal(syscall.SIGHUP); return err }

// Kill ends the program at once (SIGKILL) and waits until it is gone.
func (p *Proc) Kill() error {
	done, err := p.signal(syscall.SIGKILL)
	if err != nil {
		return err
	}
	<-done
	return nil
}

// Term asks the program to end (SIGTERM) and waits for it up to limit. It returns what the program ended with.
func (p *Proc) Term(limit time.Duration) error {
	done, err := p.signal(syscall.SIGTERM)
	if err != nil {
		return err
	}
	select {
	case <-done:
	case <-time.After(limit):
		return fmt.Errorf("rig: %s did not end within %v of SIGTERM", p.Name, limit)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return fmt.Errorf("rig: %s ended with: %w", p.Name, p.err)
	}
	return nil
}

// Close ends the program whatever state it is in.
func (p *Proc) Close() {
	if p.Alive() {
		_ = p.Kill()
	}
}

// Output returns what the program has written so far, over all starts.
func (p *Proc) Output() []byte {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

// Tail returns the last n lines of Output.
func (p *Proc) Tail(n int) string {
	lines := bytes.Split(bytes.TrimRight(p.Output(), "\n"), []byte("\n"))
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return string(bytes.Join(lines, []byte("\n")))
}

// Await calls ok every few milliseconds until it returns nil, and returns its last error when ctx ends first or the
// program has died meanwhile.
func (p *Proc) Await(ctx context.Context, what string, ok func() error) error {
	err := Until(ctx, func() error {
		if !p.Alive() {
			return errDead
		}
		return ok()
	})
	if err != nil {
		return fmt.Errorf("rig: %s: waiting for %s: %w; its last words:\n%s", p.Name, what, err, p.Tail(15))
	}
	return nil
}

var errDead = errors.New("it has ended")

// Until calls ok every 20 ms until it returns nil; when ctx ends first, or ok finds a dead program, it returns ok's last error.
func Until(ctx context.Context, ok func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil || errors.Is(err, errDead) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%v)", err, ctx.Err())
		case <-tick.C:
		}
	}
}
