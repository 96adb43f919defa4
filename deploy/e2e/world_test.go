package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/deploy/rig"
	"github.com/upstrand/upstrand/registry/wire"
)

func defaultParallel() int { return runtime.GOMAXPROCS(0) }

// shape says which roles a test's world has; zero values are one of each.
type shape struct {
	listeners, confgens, proxies int
	options                      func(*rig.Options)
	proxyFlags                   []string
}

// world is a running installation in which a test plays.
type world struct {
	*rig.World
	t         *testing.T
	ctx       context.Context
	listeners []*rig.Role
	confgens  []*rig.Role
	proxies   []*rig.Role
	registry  *rig.Role
}

// start makes a world and waits until every role is ready. A failed test shows the last lines of every log.
func start(t *testing.T, s shape) *world {
	t.Helper()
	limit := 4 * time.Minute
	if times.Name == "full" {
		limit = 20 * time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	dir, err := os.MkdirTemp("", "e2e")
	if err == nil {
		err = os.Chmod(dir, 0o755) // the user mysql must get through
	}
	if err != nil {
		t.Fatal(err)
	}
	opt := rig.Options{Parts: parts, Times: times, Binaries: binaries, Dir: dir}
	if s.options != nil {
		s.options(&opt)
	}
	rw, err := rig.New(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{World: rw, t: t, ctx: ctx}
	t.Cleanup(func() { w.end(dir) })
	for i := range max(1, s.listeners) {
		w.listeners = append(w.listeners, w.must(w.Listener(ctx, fmt.Sprintf("listener-%d", i+1))))
	}
	for i := range max(1, s.confgens) {
		w.confgens = append(w.confgens, w.must(w.Confgen(ctx, fmt.Sprintf("confgen-%d", i+1))))
	}
	w.registry = w.must(w.Registry(ctx, "registry"))
	for i := range max(1, s.proxies) {
		w.proxies = append(w.proxies, w.must(w.Proxy(ctx, fmt.Sprintf("proxy-%d", i+1), s.proxyFlags...)))
	}
	for _, r := range w.Roles() {
		w.ok(r.AwaitReady(ctx, 30*time.Second))
	}
	return w
}

func (w *world) end(dir string) {
	w.Close()
	if w.t.Failed() {
		for _, r := range w.Roles() {
			w.t.Logf("%s:\n%s", r.Name, r.Tail(12))
		}
		w.t.Logf("broker:\n%s\nlogs are kept in %s", w.Broker.Tail(5), dir)
		return
	}
	if os.Getenv("UPSTRAND_KEEP") == "" {
		_ = os.RemoveAll(dir)
	}
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) must(r *rig.Role, err error) *rig.Role {
	w.t.Helper()
	w.ok(err)
	return r
}

// until waits for a condition, which says what is missing.
func (w *world) until(limit time.Duration, what string, cond func() error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	if err := rig.Until(ctx, cond); err != nil {
		w.t.Fatalf("%s, within %v: %v", what, limit, err)
	}
}

// topology waits until the published topology satisfies a condition.
func (w *world) topology(limit time.Duration, what string, cond func(rig.Seen) error) rig.Seen {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	s, err := w.Topology.Await(ctx, cond)
	if err != nil {
		w.t.Fatalf("%s, within %v: %v", what, limit, err)
	}
	return s
}

// join starts an instance.
func (w *world) join(s rig.Spec) *rig.Instance {
	w.t.Helper()
	i, err := w.Join(s)
	w.ok(err)
	return i
}

// fleet starts n instances of each service and waits until all are published and every proxy serves every service.
func (w *world) fleet(n int, services ...string) []*rig.Instance {
	w.t.Helper()
	var all []*rig.Instance
	for _, s := range services {
		for i := range n {
			all = append(all, w.join(rig.Spec{Service: s, ID: fmt.Sprintf("i%03d", i)}))
		}
	}
	w.topology(20*time.Second, "all instances in the topology", has(n, services...))
	for _, s := range services {
		w.served(10*time.Second, "/"+s)
	}
	return all
}

// has is the condition that each service has n instances.
func has(n int, services ...string) func(rig.Seen) error {
	return func(s rig.Seen) error {
		for _, name := range services {
			if list, _ := s.Instances(name); len(list) != n {
				return fmt.Errorf("%s has %d instances, want %d", name, len(list), n)
			}
		}
		return nil
	}
}

// served waits until every running proxy answers a path with 200.
func (w *world) served(limit time.Duration, path string) {
	w.t.Helper()
	for _, p := range w.proxies {
		if p.Alive() {
			w.until(limit, p.Name+" serves "+path, func() error { _, err := w.get(p, path); return err })
		}
	}
}

var oneShot = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// get asks a proxy once and returns which instance answered.
func (w *world) get(p *rig.Role, path string) (string, error) {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "http://"+p.Traffic+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := oneShot.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp.Header.Get(rig.HeaderInstance), nil
}

// load sends requests to the services through all proxies in turn. A failed request fails the test when the load ends.
func (w *world) load(perSecond int, services ...string) *load {
	var urls []string
	for _, s := range services {
		for _, p := range w.proxies {
			urls = append(urls, "http://"+p.Traffic+"/"+s+"/x")
		}
	}
	l := &load{Load: rig.StartLoad(perSecond, urls...), t: w.t}
	w.t.Cleanup(func() { l.Load.Stop() })
	return l
}

type load struct {
	*rig.Load
	t *testing.T
}

// clean ends the load: none failed, and enough was sent to mean something.
func (l *load) clean(perSecond int) rig.Summary {
	l.t.Helper()
	s := l.Stop()
	l.t.Log(s)
	if len(s.Failures) > 0 {
		l.t.Errorf("%d requests failed", len(s.Failures))
	}
	if least := int(s.Lasted.Seconds() * float64(perSecond) * 0.7); s.Sent < least {
		l.t.Errorf("only %d requests were sent in %v, want at least %d: the machine is too busy for this test to mean anything", s.Sent, s.Lasted, least)
	}
	return s
}

// shown waits until the registry shows an instance that satisfies a condition.
func (w *world) shown(limit time.Duration, service, id string, cond func(wire.Instance) error) wire.Instance {
	w.t.Helper()
	var last wire.Instance
	w.until(limit, "the registry shows "+service+"/"+id, func() error {
		i, err := w.InstanceNow(w.ctx, service, id)
		if err != nil {
			return err
		}
		last = i
		return cond(i)
	})
	return last
}

// liveness is the condition of an instance's liveness.
func liveness(want string) func(wire.Instance) error {
	return func(i wire.Instance) error {
		if i.Liveness != want {
			return fmt.Errorf("liveness is %s (%s), want %s", i.Liveness, i.Cause, want)
		}
		return nil
	}
}

// address is the topology's address of an instance, "" when it is not there.
func address(s rig.Seen, service, id string) string {
	i, _ := s.Instance(service, id)
	return i.Addr
}

// ids lists the instances of a service in a topology.
func ids(s rig.Seen, service string) map[string]topology.Instance {
	list, _ := s.Instances(service)
	out := make(map[string]topology.Instance, len(list))
	for _, i := range list {
		out[i.ID] = i
	}
	return out
}

var errNotYet = errors.New("not yet")

// leader is the confgen that leads.
func (w *world) leader() *rig.Role {
	w.t.Helper()
	var leader *rig.Role
	w.until(20*time.Second, "one confgen leads", func() error {
		leader = nil
		for _, c := range w.confgens {
			if !c.Alive() {
				continue
			}
			v, err := c.Metric(w.ctx, "upstrand_confgen_leader")
			if err != nil {
				return err
			}
			if v == 1 {
				if leader != nil {
					return errors.New("two confgens say that they lead")
				}
				leader = c
			}
		}
		if leader == nil {
			return errNotYet
		}
		return nil
	})
	return leader
}

// selfInstance is an instance of a service as a process of its own.
func (w *world) selfInstance(service, id string) (*rig.Proc, string) {
	w.t.Helper()
	addr, err := rig.FreeAddr()
	w.ok(err)
	self, err := os.Executable()
	w.ok(err)
	spec, err := json.Marshal(instanceSpec{Broker: w.Kafka.Addr, Interval: times.Beat, Service: service, ID: id, Addr: addr})
	w.ok(err)
	p := &rig.Proc{Name: service + "/" + id, Path: self, Env: []string{"E2E_INSTANCE=" + string(spec)}, Log: filepath.Join(w.Dir, service+"-"+id+".log")}
	w.ok(p.Start())
	w.t.Cleanup(p.Close)
	return p, addr
}
