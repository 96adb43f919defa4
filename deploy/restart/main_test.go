//go:build linux

// Package restart is the acceptance test of a proxy's end and of its replacement by another process: the program runs as it
// is delivered, clients put load on it over real sockets, signals are sent, and no request may fail that its client sent as
// HTTP says.
//
// It holds no unit tests: what a package promises is tested beside that package.
package restart

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var program string // the one under test

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "upstrand-restart")
	if err == nil {
		program = filepath.Join(dir, "upstrand")
		err = build()
	}
	if err == nil {
		// A process whose starter has ended becomes a child of this one, which can wait for it.
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "restart:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build makes the program. UPSTRAND_BINARIES names a folder with a ready one.
func build() error {
	if ready := os.Getenv("UPSTRAND_BINARIES"); ready != "" {
		program = filepath.Join(ready, "upstrand")
		return nil
	}
	cmd := exec.Command("go", "build", "-o", program, "../../cmd/upstrand")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// proxied is a proxy and those that took its place, one after the other. Their logs come together.
type proxied struct {
	t    *testing.T
	pids []int // the last one serves
	out  *os.File

	mu    sync.Mutex
	lines []line
}

type line struct {
	Message, Error, Cause string
	Level                 string
	Pid                   int
	Addr                  json.RawMessage
	For                   string
	text                  string
}

// start runs the program with arguments, and ends whoever is left with the test.
func start(t *testing.T, args ...string) *proxied {
	t.Helper()
	return run(t, exec.Command(program, args...))
}

// run is start for a command of its own.
func run(t *testing.T, cmd *exec.Cmd) *proxied {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &proxied{t: t, out: r}
	cmd.Args = append(cmd.Args, "--log-format", "json")
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	p.pids = []int{cmd.Process.Pid}
	read := make(chan struct{})
	go func() { defer close(read); p.read() }()
	t.Cleanup(func() {
		for _, pid := range p.pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = p.exited(pid, 10*time.Second)
		}
		_ = r.SetReadDeadline(time.Now().Add(time.Second))
		<-read
		_ = r.Close()
		if t.Failed() {
			t.Logf("the log:\n%s", p.log())
		}
	})
	return p
}

func (p *proxied) read() {
	for s := bufio.NewScanner(p.out); s.Scan(); {
		l := line{text: s.Text()}
		_ = json.Unmarshal(s.Bytes(), &l)
		p.mu.Lock()
		p.lines = append(p.lines, l)
		p.mu.Unlock()
	}
}

func (p *proxied) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, l := range p.lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

// said waits for the nth line with this message.
func (p *proxied) said(n int, message string) line {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		p.mu.Lock()
		found := 0
		for _, l := range p.lines {
			if strings.Contains(l.Message, message) {
				if found++; found == n {
					p.mu.Unlock()
					return l
				}
			}
		}
		p.mu.Unlock()
	}
	p.t.Fatalf("nobody said %q %d times", message, n)
	return line{}
}

func (p *proxied) signal(s syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.pids[len(p.pids)-1], s); err != nil {
		p.t.Fatal(err)
	}
}

// replace has another process take the place of the one that serves.
func (p *proxied) replace() {
	p.t.Helper()
	p.signal(syscall.SIGUSR2)
	p.pids = append(p.pids, p.said(len(p.pids), "another process serves").Pid)
}

// exited waits for the end of a process and gives its exit code; -1 when a signal ended it.
func (p *proxied) exited(pid int, within time.Duration) (int, error) {
	for end := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		var status syscall.WaitStatus
		switch got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); {
		case err != nil && err != syscall.EINTR:
			return 0, fmt.Errorf("wait for %d: %w", pid, err)
		case got == pid:
			return status.ExitStatus(), nil
		case time.Now().After(end):
			return 0, fmt.Errorf("process %d goes on", pid)
		}
	}
}

// ends expects the exit code 0 of a process.
func (p *proxied) ends(pid int, within time.Duration) {
	p.t.Helper()
	if code, err := p.exited(pid, within); err != nil || code != 0 {
		p.t.Errorf("process %d: exit code %d, %v", pid, code, err)
	}
}
