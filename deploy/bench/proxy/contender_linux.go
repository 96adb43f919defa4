package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/upstrand/upstrand/deploy/rig"
)

// door is one of the addresses that each proxy listens on.
type door string

const (
	plain  door = "plain"
	logged door = "logged" // plain, with an access log in a file
	secure door = "secure" // TLS, HTTP/1.1 and HTTP/2
)

// contender is a proxy that runs.
type contender struct {
	name    string
	version string
	proc    *rig.Proc
	doors   map[door]string // address by door
	cannot  map[door]string // why a door is not there
	admin   string          // of ours; else empty
}

// errMissing is why a proxy can't be measured here.
type errMissing struct{ what, install string }

func (e errMissing) Error() string { return e.what + " is not there: " + e.install }

// makers start the proxies by name.
var makers map[string]func(context.Context, *bench) (*contender, error)

func init() {
	makers = map[string]func(context.Context, *bench) (*contender, error){
		"nginx": nginx, "haproxy": haproxy, "caddy": caddy, "reverseproxy": reverseproxy,
		"upstrand": func(ctx context.Context, b *bench) (*contender, error) {
			return upstrand(ctx, b, variant{name: "upstrand"})
		},
	}
}

// newContender gives a name its folder and addresses.
func (b *bench) newContender(name string) (*contender, string, error) {
	c := &contender{name: name, doors: map[door]string{}, cannot: map[door]string{}}
	for _, d := range []door{plain, logged, secure} {
		addr, err := rig.FreeAddr()
		if err != nil {
			return nil, "", err
		}
		c.doors[d] = addr
	}
	dir := filepath.Join(b.dir, name)
	return c, dir, os.MkdirAll(dir, 0o755)
}

// bring starts a contender's process on the proxies' core.
func (b *bench) bring(ctx context.Context, c *contender, env []string, args ...string) (*contender, error) {
	var err error
	c.proc, err = b.start(ctx, process{name: c.name, cores: b.proxyCore, args: args, env: env, ready: c.doors[plain]})
	return c, err
}

// stop ends it before the benchmark does.
func (c *contender) stop() { c.proc.Close() }

// lookup finds a program in PATH or where Debian keeps those of administrators.
func lookup(name, install string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	if path := "/usr/sbin/" + name; isFile(path) {
		return path, nil
	}
	return "", errMissing{name, install}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func write(dir, name, format string, args ...any) (string, error) {
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o644)
}
