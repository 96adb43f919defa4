package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/upstrand/upstrand/deploy/bench/figures"
	"github.com/upstrand/upstrand/deploy/rig"
)

const (
	idleConns     = 10_000
	manyUpstreams = 1000
	manyServers   = 10
)

// memory reads how much of it nginx and we occupy: after a moment of work, then with idle connections that made a request each; and, in a new process, with
// many upstreams in the configuration.
func memory(ctx context.Context, b *bench) error {
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nresident memory, MB\tafter a burst\twith %d idle connections\tdifference\tKB a connection\twith %d upstreams of %d servers\n", idleConns, manyUpstreams, manyServers)
	for _, name := range []string{"nginx", "upstrand"} {
		if !slices.Contains(b.proxies, name) {
			continue
		}
		before, idle, err := b.idle(ctx, name)
		var missing errMissing
		if errors.As(err, &missing) {
			fmt.Fprintf(w, "%s\tleft out: %v\n", name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		many, err := b.many(ctx, name)
		if err != nil {
			return fmt.Errorf("%s with many upstreams: %w", name, err)
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\n", name, mb(before), mb(idle), mb(idle-before), float64(idle-before)/1000/idleConns, mb(many))
	}
	return w.Flush()
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }

func (b *bench) idle(ctx context.Context, name string) (before, idle int64, err error) {
	c, err := makers[name](ctx, b)
	if err != nil {
		return 0, 0, err
	}
	defer c.stop()
	if _, err := b.burst(ctx, c, rows[1]); err != nil {
		return 0, 0, err
	}
	if before, err = figures.ResidentOf(c.proc.Pid()); err != nil {
		return 0, 0, err
	}
	err = b.holding(ctx, c.doors[plain], func() error {
		idle, err = figures.ResidentOf(c.proc.Pid())
		return err
	})
	return before, idle, err
}

// holding calls f while the generator holds idle connections.
func (b *bench) holding(ctx context.Context, addr string, f func() error) error {
	cmd := exec.CommandContext(ctx, b.program("load"), "-hold", "-addr", addr, "-conns", strconv.Itoa(idleConns))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if strings.HasPrefix(line, "held ") {
		select { // buffers of connections that have become idle are given back meanwhile
		case <-time.After(3 * time.Second):
			err = f()
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	_ = in.Close()
	if ended := cmd.Wait(); ended != nil {
		return fmt.Errorf("load generator: %w: %s", ended, strings.TrimSpace(said.String()))
	}
	return err
}

// many is the memory of a process with a large configuration, after its first second.
func (b *bench) many(ctx context.Context, name string) (int64, error) {
	addr, err := rig.FreeAddr()
	if err != nil {
		return 0, err
	}
	add := func(conf string) string { return upstreams(addr) + conf }
	var c *contender
	if name == "nginx" {
		c, err = nginxWith(ctx, b, "nginx-many", add)
	} else {
		c, err = upstrand(ctx, b, variant{name: "upstrand-many", rewrite: func(conf string, _ *contender) string { return add(conf) }})
	}
	if err != nil {
		return 0, err
	}
	defer c.stop()
	r := rows[1]
	if _, err := b.burst(ctx, c, r); err != nil {
		return 0, err
	}
	return figures.ResidentOf(c.proc.Pid())
}

// upstreams are many, each with a server name of its own, and peers with addresses of their own that nobody listens on.
func upstreams(addr string) string {
	var s strings.Builder
	for i := range manyUpstreams {
		fmt.Fprintf(&s, "upstream service-%d { keepalive 32;", i)
		for j := range manyServers {
			fmt.Fprintf(&s, " server 127.%d.%d.%d:8080;", 1+i/200, i%200, j+1)
		}
		s.WriteString(" }\n")
	}
	s.WriteString("server_names_hash_max_size 4096;\n")
	for i := range manyUpstreams {
		fmt.Fprintf(&s, "server { listen %s; server_name service-%d.example; access_log off; location / { proxy_pass http://service-%d; } }\n", addr, i, i)
	}
	return s.String()
}
