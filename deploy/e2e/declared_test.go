package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

// canary leads /canary to the instances of one version, and /walk to version 2 first, then version 1.
const canary = `upstream first { discover orders version=%d; }
upstream v1 { discover orders version=1; }
upstream v2 { discover orders version=2; }
upstrand canary { upstream v2; upstream v1; order per_request; next_upstream_statuses error timeout 5xx; }
server {
    location /canary { proxy_pass http://first; }
    location /walk { proxy_pass http://$upstrand_canary; }
}
`

// operate runs an operator's command.
func (w *world) operate(line ...string) (string, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 40*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, w.Program(), append(line, "--registry", w.registry.Traffic)...).CombinedOutput()
	return string(out), err
}

var published = regexp.MustCompile(`published as version (\d+)`)

// apply runs a command that changes what is declared and waits for its version.
func (w *world) apply(line ...string) int64 {
	w.t.Helper()
	out, err := w.operate(append(line, "--yes", "--wait")...)
	m := published.FindStringSubmatch(out)
	if err != nil || m == nil {
		w.t.Fatalf("%v: %v\n%s", line, err, out)
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	return n
}

// answers waits until every proxy serves a path by instances of one kind alone.
func (w *world) answers(path, by string) {
	w.t.Helper()
	for _, p := range w.proxies {
		w.until(10*time.Second, fmt.Sprintf("%s is served by %s on %s", path, by, p.Name), func() error {
			for range 8 {
				who, err := w.get(p, path)
				if err != nil {
					return err
				}
				if !strings.Contains(who, by) {
					return fmt.Errorf("%s answers", who)
				}
			}
			return nil
		})
	}
}

// Operators declare a canary over the live registry: it arrives at every proxy as a version, is rolled back, and deleted;
// a dry run changes nothing, and of two who expect the same one is told so.
func TestDeclaredTopology(t *testing.T) {
	t.Parallel()
	w := start(t, shape{proxies: 2, confgens: 2})
	version := func(v string) func(*heartbeat.Beat) { return func(b *heartbeat.Beat) { b.Version = v } }
	for _, s := range []rig.Spec{
		{Service: "orders", ID: "old-1", Beat: version("1")}, {Service: "orders", ID: "old-2", Beat: version("1")}, {Service: "orders", ID: "new-1", Beat: version("2")},
	} {
		w.join(s)
	}
	w.topology(20*time.Second, "all instances in the topology", has(3, "orders"))
	w.served(10*time.Second, "/orders")
	file := func(version int) string {
		path := filepath.Join(w.Dir, fmt.Sprintf("canary-%d.conf", version))
		w.ok(os.WriteFile(path, fmt.Appendf(nil, canary, version), 0o644))
		return path
	}
	api, err := w.API()
	w.ok(err)
	declared := func() int64 {
		d, err := api.Declared(w.ctx)
		w.ok(err)
		return d.Revision
	}

	out, err := w.operate("topology", "apply", file(2), "--dry-run")
	if err != nil || !strings.Contains(out, "+ upstream first (1 peer)") || !strings.Contains(out, "3 upstreams added, 1 upstrand added, 2 routes added") || declared() != 0 {
		t.Fatalf("dry run: %v\n%s", err, out)
	}
	first := w.apply("topology", "apply", file(2), "--comment", "version 2 first")
	w.answers("/canary/x", "new-1")
	w.answers("/walk", "new-1")
	whole, err := api.WholeTopology(w.ctx, client.TopologyQuery{Prefix: "upstrand/canary"})
	if err != nil || len(whole.Content) != 1 || !strings.Contains(string(whole.Content[0].Value), `"origin":"declared"`) || whole.Version < first {
		t.Errorf("version %d has %s (%v)", whole.Version, whole.Content, err)
	}
	// Who joins is discovered, without a word from anyone.
	w.join(rig.Spec{Service: "orders", ID: "new-2", Beat: version("2")})
	w.until(10*time.Second, "a new instance of version 2 is served", func() error {
		for range 4 {
			if who, err := w.get(w.proxies[0], "/canary"); err != nil || strings.Contains(who, "new-2") {
				return err
			}
		}
		return errNotYet
	})

	second := w.apply("topology", "apply", file(1))
	w.answers("/canary/x", "old-")
	back := w.apply("topology", "declared", "rollback", "main", "1")
	w.answers("/canary/x", "new-")
	if first >= second || second >= back || declared() != 3 {
		t.Errorf("versions %d, %d, %d; revision %d", first, second, back, declared())
	}
	out, err = w.operate("topology", "apply", filepath.Join(w.Dir, "canary-1.conf"), "--name", "twice", "--yes")
	if err == nil || !strings.Contains(out, "is declared at main:1 already") || declared() != 3 {
		t.Errorf("names that are declared already: %v\n%s", err, out)
	}
	w.atOnce(api)

	w.apply("topology", "declared", "delete", "main")
	for _, p := range w.proxies {
		w.until(10*time.Second, "the declared routes are gone from "+p.Name, func() error {
			if who, err := w.get(p, "/canary"); err == nil || !strings.Contains(err.Error(), "404") {
				return fmt.Errorf("%s %v", who, err)
			}
			return nil
		})
	}
	w.served(time.Second, "/orders")
}

// atOnce lets several declare at once what each made for the same revision.
func (w *world) atOnce(api *client.Client) {
	w.t.Helper()
	d, err := api.Declared(w.ctx)
	w.ok(err)
	const n = 6
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, errs[i] = api.Declare(w.ctx, wire.DeclareRequest{Name: "main", Author: fmt.Sprint("operator ", i), Expected: &d.Revision,
				Text: fmt.Sprintf(canary, 2) + fmt.Sprintf("upstream by { server 10.0.0.%d:80; }\n", i+1)})
		})
	}
	wg.Wait()
	won, lost := 0, 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case client.IsConflict(err):
			lost++
		default:
			w.t.Error(err)
		}
	}
	if won != 1 || lost != n-1 {
		w.t.Errorf("%d won, %d were told of a conflict", won, lost)
	}
}
