package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/upstrand/upstrand/deploy/rig"
)

// variant is one way to run us.
type variant struct {
	name    string
	program string                                 // absent: what is built here, or -upstrand
	rewrite func(conf string, c *contender) string // of the configuration; nil: as it stands
	args    []string
}

// upstrand starts us. TLS that the program can't do is left out, and its words kept.
func upstrand(ctx context.Context, b *bench, v variant) (*contender, error) {
	program, err := b.ours(ctx, v)
	if err != nil {
		return nil, err
	}
	c, dir, err := b.newContender(v.name)
	if err != nil {
		return nil, err
	}
	if c.admin, err = rig.FreeAddr(); err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "upstrand.conf")
	log := filepath.Join(dir, "access.log")
	for _, tls := range []string{"ssl http2", ""} {
		text := servers(c, b, log, tls)
		if v.rewrite != nil {
			text = v.rewrite(text, c)
		}
		if _, err := write(dir, "upstrand.conf", "%s", text); err != nil {
			return nil, err
		}
		fault := check(ctx, program, conf)
		if fault == nil {
			break
		}
		if tls == "" {
			return nil, fmt.Errorf("%s: %w", v.name, fault)
		}
		c.cannot[secure] = fault.Error()
	}
	args := append([]string{program, "proxy", "--conf", conf, "--admin-listen", c.admin, "--drain-timeout", "1s"}, v.args...)
	return b.bring(ctx, c, []string{"GOMAXPROCS=1"}, args...)
}

// ours is the program of a variant, built when it is needed first.
func (b *bench) ours(ctx context.Context, v variant) (string, error) {
	switch {
	case v.program != "":
		return filepath.Abs(v.program)
	case b.upstrand != "":
		return filepath.Abs(b.upstrand)
	case isFile(b.program("upstrand")):
		return b.program("upstrand"), nil
	}
	return b.program("upstrand"), b.build(ctx, "upstrand", ".", "./cmd/upstrand")
}

// check asks the program whether it takes the file. The error is its first fault.
func check(ctx context.Context, program, conf string) error {
	out, err := exec.CommandContext(ctx, program, "topology", "check", conf).CombinedOutput()
	if err == nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "upstrand.conf:") {
			_, line, _ = strings.Cut(line, "upstrand.conf:")
			return errors.New("line " + strings.TrimSpace(line))
		}
	}
	return fmt.Errorf("topology check: %w: %s", err, out)
}
