package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

// bench is the world that proxies are measured in. close stops all that it started.
type bench struct {
	settings
	dir    string // for programs, configurations and logs; removed at the end
	origin string // ip:port of the backend
	cert   string
	key    string
	out    io.Writer
	procs  []*rig.Proc
}

// cores are the defaults: the last one for proxies, all others for the rest.
func cores() (others, last string) {
	n := runtime.NumCPU()
	if n < 2 {
		return "0", "0"
	}
	return "0-" + strconv.Itoa(n-2), strconv.Itoa(n - 1)
}

func newBench(ctx context.Context, s settings) (b *bench, err error) {
	if _, err := exec.LookPath("taskset"); err != nil {
		return nil, errors.New("taskset is not in PATH: it binds proxies to a core; install util-linux")
	}
	b = &bench{settings: s, out: os.Stdout}
	if b.dir, err = os.MkdirTemp("", "upstrand-bench"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if err := os.Chmod(b.dir, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{"origin", "load"} {
		if err := b.build(ctx, name, ".", "./deploy/bench/"+name); err != nil {
			return nil, err
		}
	}
	if b.cert, b.key, err = certificate(b.dir); err != nil {
		return nil, err
	}
	port, err := rig.FreePort()
	if err != nil {
		return nil, err
	}
	b.origin = "127.0.0.1:" + strconv.Itoa(port)
	_, err = b.start(ctx, process{name: "origin", cores: s.loadCores, args: []string{b.program("origin"), "-port", strconv.Itoa(port)}, env: []string{"GOMAXPROCS=1"}, ready: b.origin})
	return b, err
}

// close ends every process by its id and removes the folder.
func (b *bench) close() error {
	for _, p := range b.procs {
		p.Close()
	}
	return os.RemoveAll(b.dir)
}

func (b *bench) program(name string) string { return filepath.Join(b.dir, "program-"+name) }

// build compiles a package of the module in folder.
func (b *bench) build(ctx context.Context, name, folder, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.program(name), pkg)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s (run it from the top of the repository): %w\n%s", name, err, out)
	}
	return nil
}

// bound is a command line that runs a program on some cores.
func bound(cores string, program ...string) []string {
	return append([]string{"taskset", "-c", cores}, program...)
}

// process is a program to start.
type process struct {
	name  string
	cores string
	args  []string // program first
	env   []string
	ready string // ip:port that it listens on once it is ready
}

// start runs it and waits until it takes connections.
func (b *bench) start(ctx context.Context, p process) (*rig.Proc, error) {
	args := bound(p.cores, p.args...)
	proc := &rig.Proc{Name: p.name, Path: args[0], Args: args[1:], Env: p.env, Log: filepath.Join(b.dir, p.name+".out")}
	if err := proc.Start(); err != nil {
		return nil, err
	}
	b.procs = append(b.procs, proc)
	wait, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	return proc, proc.Await(wait, p.ready, func() error {
		c, err := net.DialTimeout("tcp", p.ready, time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	})
}
