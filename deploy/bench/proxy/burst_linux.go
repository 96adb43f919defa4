package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"github.com/upstrand/upstrand/deploy/bench/figures"
)

// load runs the generator.
func (b *bench) load(ctx context.Context, args ...string) (figures.Result, error) {
	line := bound(b.loadCores, append([]string{b.program("load")}, args...)...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(cmd.Environ(), "GOMAXPROCS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return figures.Result{}, fmt.Errorf("load generator: %w: %s", err, strings.TrimSpace(said.String()))
	}
	var res figures.Result
	return res, json.Unmarshal(out, &res)
}

// burst runs one row against one proxy. It is tried twice; the error says why the second did not count either.
func (b *bench) burst(ctx context.Context, c *contender, r row) (res figures.Result, err error) {
	if why := c.cannot[r.door]; why != "" {
		return res, fmt.Errorf("can't: %s", why)
	}
	for range 2 {
		if !c.proc.Alive() {
			return res, fmt.Errorf("has ended; its last words:\n%s", c.proc.Tail(10))
		}
		res, err = b.load(ctx, r.arguments(c.doors[r.door], b.warm, b.window, c.proc.Pid())...)
		if err == nil {
			err = res.Err()
		}
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return res, err
}
