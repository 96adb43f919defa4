package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Role is one of upstrand's roles as a process. Its addresses stay the same over restarts.
type Role struct {
	*Proc
	Kind    string // listener, confgen, registry, proxy
	Admin   string // where /healthz, /readyz and /metrics are
	Traffic string // where a proxy serves, where the registry has its API; else ""
}

// Listener starts a listener under a name of the test's choice; extra flags come last.
func (w *World) Listener(ctx context.Context, name string, extra ...string) (*Role, error) {
	t := w.Times
	return w.role(ctx, "listener", name, append(w.both(),
		"--pulse-interval", t.Pulse.String(), "--session-timeout", t.Session.String(), "--unproven-limit", t.Unproven.String()), extra)
}

// Confgen starts a confgen.
func (w *World) Confgen(ctx context.Context, name string, extra ...string) (*Role, error) {
	t := w.Times
	return w.role(ctx, "confgen", name, append(w.both(),
		"--poll", t.Poll.String(), "--lease", t.Lease.String(), "--commit-interval", t.Commit.String(), "--stale-hold", t.Hold.String()), extra)
}

// Registry starts the API server. A world has one that the test reads from: the first.
func (w *World) Registry(ctx context.Context, name string, extra ...string) (*Role, error) {
	r, err := w.role(ctx, "registry", name, w.both(), extra)
	if err == nil && w.registry == nil {
		w.registry = r
	}
	return r, err
}

// Proxy starts a proxy, with a state folder of its own that outlives it.
func (w *World) Proxy(ctx context.Context, name string, extra ...string) (*Role, error) {
	return w.role(ctx, "proxy", name, append(append([]string(nil), w.kafkaFlags...),
		"--id", name, "--state-dir", filepath.Join(w.Dir, name+".state"), "--beat-interval", w.Times.Agent.String()), extra)
}

// FileProxy starts a proxy that serves a configuration file beside the published topology. text gives the file for the
// address that it is to listen on. It returns the file's path.
func (w *World) FileProxy(ctx context.Context, name string, text func(listen string) string) (*Role, string, error) {
	traffic, err := FreeAddr()
	if err != nil {
		return nil, "", err
	}
	admin, err := FreeAddr()
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(w.Dir, name+".conf")
	if err := os.WriteFile(file, []byte(text(traffic)), 0o644); err != nil {
		return nil, "", err
	}
	args := append([]string{"proxy", "--log-format", "json", "--log-level", "debug", "--conf", file, "--admin-listen", admin}, w.kafkaFlags...)
	r := &Role{Kind: "proxy", Admin: admin, Traffic: traffic}
	r.Proc = &Proc{Name: name, Path: w.program, Log: filepath.Join(w.Dir, name+".log"),
		Args: append(args, "--id", name, "--state-dir", filepath.Join(w.Dir, name+".state"), "--beat-interval", w.Times.Agent.String())}
	w.mu.Lock()
	w.roles = append(w.roles, r)
	w.mu.Unlock()
	return r, file, r.Start(ctx)
}

func (w *World) both() []string {
	return append(append([]string(nil), w.kafkaFlags...), w.databaseFlags()...)
}

func (w *World) role(ctx context.Context, kind, name string, flags, extra []string) (*Role, error) {
	admin, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	r := &Role{Kind: kind, Admin: admin}
	args := append([]string{kind, "--log-format", "json", "--log-level", "debug"}, flags...)
	switch kind {
	case "registry":
		r.Traffic = admin
		args = append(args, "--listen", admin)
	case "proxy":
		if r.Traffic, err = FreeAddr(); err != nil {
			return nil, err
		}
		args = append(args, "--listen", r.Traffic, "--admin-listen", admin)
	default:
		args = append(args, "--admin-listen", admin)
	}
	r.Proc = &Proc{Name: name, Path: w.program, Args: append(args, extra...), Log: filepath.Join(w.Dir, name+".log")}
	w.mu.Lock()
	w.roles = append(w.roles, r)
	w.mu.Unlock()
	return r, r.Start(ctx)
}

// Start starts a role that has ended and waits until its admin port answers, ready or not.
func (r *Role) Start(ctx context.Context) error {
	if err := r.Proc.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return r.Await(ctx, "its admin port", func() error { return get(ctx, "http://"+r.Admin+"/healthz", nil) })
}

// Restart kills the role with SIGKILL and starts it again.
func (r *Role) Restart(ctx context.Context) error {
	if err := r.Kill(); err != nil {
		return err
	}
	return r.Start(ctx)
}

// Ready asks /readyz once: nil is ready, the error carries what the role says it lacks.
func (r *Role) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return get(ctx, "http://"+r.Admin+"/readyz", nil)
}

// AwaitReady waits for Ready.
func (r *Role) AwaitReady(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return r.Await(ctx, "readiness", func() error { return r.Ready(ctx) })
}

// Metric is the sum of all series of a metric whose labels contain each of the given `name="value"` texts.
func (r *Role) Metric(ctx context.Context, name string, labels ...string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	sum, found := 0.0, false
	err := get(ctx, "http://"+r.Admin+"/metrics", func(body io.Reader) error {
		lines := bufio.NewScanner(body)
		for lines.Scan() {
			value, ok := series(lines.Text(), name, labels)
			if !ok {
				continue
			}
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return fmt.Errorf("line %q: %w", lines.Text(), err)
			}
			sum, found = sum+v, true
		}
		return lines.Err()
	})
	if err == nil && !found {
		err = errors.New("no such series")
	}
	if err != nil {
		return 0, fmt.Errorf("rig: metric %s%q of %s: %w", name, labels, r.Name, err)
	}
	return sum, nil
}

// series returns the value of a line of the text format when it is of that metric and has those labels.
func series(line, name string, labels []string) (string, bool) {
	rest, ok := strings.CutPrefix(line, name)
	if !ok || rest == "" || (rest[0] != '{' && rest[0] != ' ') {
		return "", false
	}
	for _, l := range labels {
		if !strings.Contains(rest, l) {
			return "", false
		}
	}
	at := strings.LastIndexByte(rest, ' ')
	return rest[at+1:], true
}

// adminClient opens a connection for each request: a role that was killed and came back must not be met by an old one.
var adminClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// get reads a URL; any status but 200 is an error with the body in it.
func get(ctx context.Context, url string, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := adminClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
		return fmt.Errorf("GET %s: %s: %s", url, resp.Status, strings.TrimSpace(string(body)))
	}
	if read == nil {
		return nil
	}
	return read(resp.Body)
}
