package wire

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

// full tells whether the long forms and the built program are asked for.
func full() bool { return os.Getenv("UPSTRAND_WIRE") != "" }

func needsProgram(t *testing.T) {
	t.Helper()
	if !full() {
		t.Skip("runs the built program: make conformance-http")
	}
}

// theProgram gives the path of the program, which is built once.
var theProgram = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("UPSTRAND_BINARY"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "upstrand-wire-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "upstrand")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/upstrand").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	built = dir
	return path, nil
})

// built is the folder to be removed at the end.
var built string

// program is a running `upstrand proxy --conf`.
type program struct {
	t    *testing.T
	proc *rig.Proc
}

// start runs it until the end of the test. It listens on all of the addresses when start returns.
func start(t *testing.T, conf string, listen ...string) *program {
	t.Helper()
	path, err := theProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "test.conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &program{t, &rig.Proc{Name: "upstrand", Path: path, Log: filepath.Join(dir, "output"),
		Args: []string{"proxy", "--conf", file, "--admin-listen", freeAddr(t), "--drain-timeout", "1s"}}}
	if err := p.proc.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !p.proc.Alive() {
			t.Errorf("the program has ended:\n%s", p.proc.Tail(30))
			return
		}
		_ = p.proc.Term(5 * time.Second)
		p.proc.Close()
	})
	for until := time.Now().Add(20 * time.Second); len(listen) > 0; {
		c, err := net.Dial("tcp", listen[0])
		switch {
		case err == nil:
			_ = c.Close()
			listen = listen[1:]
		case !p.proc.Alive() || time.Now().After(until):
			t.Fatalf("the program does not listen:\n%s", p.proc.Output())
		default:
			time.Sleep(10 * time.Millisecond)
		}
	}
	return p
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := rig.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// memory is the bytes that the program holds in memory.
func (p *program) memory() int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.proc.Pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	if err != nil {
		p.t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// files is how many it has open.
func (p *program) files() int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.proc.Pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	return len(list)
}

// TestTableOfTheProgram runs the table against the built program, as it is served from a file.
func TestTableOfTheProgram(t *testing.T) {
	needsProgram(t)
	all := rows(t)
	var conf strings.Builder
	ready := make(chan *Lane, lanes)
	var addrs []string
	for range lanes {
		b, err := NewBackend()
		if err != nil {
			t.Fatal(err)
		}
		l := &Lane{Addr: freeAddr(t), Backend: b}
		conf.WriteString(LaneServer(l.Addr, b.Addr))
		ready <- l
		addrs = append(addrs, l.Addr)
	}
	start(t, conf.String(), addrs...)
	runTable(t, all, "file", func() (*Lane, error) { return <-ready, nil })
}
