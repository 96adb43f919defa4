package confgen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/confgen/declared"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// world is one database and one topic, and the processes that use them.
type world struct {
	t  *testing.T
	db *database
	tp *conflog
	n  int
	// fault is that of the processes started from now on.
	fault func(n int, op string) mishap
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, db: newDatabase(), tp: newConflog(t)}
	w.db.streams[0] = registry.StreamState{Part: 0}
	return w
}

// process is one confgen with everything that it calls behind a gate, where it can be killed or stopped.
type process struct {
	w      *world
	name   string
	g      *Generator
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	dead    bool
	calls   int
	stopped chan struct{}                 // not nil: calls wait until it is closed, as under SIGSTOP
	fault   func(n int, op string) mishap // called for each call
}

// mishap is what happens at a call.
type mishap int

const (
	pass       mishap = iota
	failBefore        // the call fails and does nothing
	failAfter         // the call does its work, and its answer is lost
	dieBefore
	dieAfter
	dieWithin // half of an append gets there
	stopBefore
	stopAfter // the call does its work, and its answer waits
	failLate  // an append fails now and gets there a second later
)

var errCut = errors.New("connection cut")

// start makes a new process; times are scaled down as in the project's tests.
func (w *world) start(change ...func(*Config)) *process {
	w.t.Helper()
	w.n++
	p := &process{w: w, name: fmt.Sprintf("p%d", w.n), done: make(chan struct{}), fault: w.fault}
	cfg := Config{
		Source: p, Leases: p, Versions: p, Fleet: p, Topic: p, Heartbeats: p, Housekeep: p.housekeep,
		Holder: p.name, Lease: time.Second, Poll: 100 * time.Millisecond, CommitInterval: time.Second, StaleHold: 3 * time.Second,
		AgentInterval: 500 * time.Millisecond, AuditInterval: 20 * time.Second, HousekeepInterval: 6 * time.Second,
		KafkaTimeout: time.Second, DatabaseTimeout: time.Second, Logger: zerolog.New(zerolog.NewTestWriter(w.t)),
	}
	for _, f := range change {
		f(&cfg)
	}
	g, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	p.g = g
	ctx, cancel := context.WithCancel(w.t.Context())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		_ = g.Run(ctx)
	}()
	return p
}

// kill is kill -9: nothing that it does from now on has any effect.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.end()
}

// end is SIGTERM.
func (p *process) end() {
	p.setFault(nil)
	p.resume()
	p.cancel()
	<-p.done
}

func (p *process) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil {
		p.stopped = make(chan struct{})
	}
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		close(p.stopped)
		p.stopped = nil
	}
}

func (p *process) setFault(f func(n int, op string) mishap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// call runs one call of the process through the gate. half is what dieWithin does, late what failLate does.
func (p *process) call(op string, do func() error, half, late func()) error {
	p.mu.Lock()
	p.calls++
	what := pass
	if p.fault != nil {
		what = p.fault(p.calls, op)
	}
	dead, stopped := p.dead, p.stopped
	if (what == stopBefore || what == stopAfter) && stopped == nil {
		p.stopped = make(chan struct{})
		stopped = p.stopped
	}
	p.mu.Unlock()
	if what == stopAfter && !dead {
		err := do()
		<-stopped
		return err
	}
	if stopped != nil {
		<-stopped // the call is already on its way: its context does not stop it
		p.mu.Lock()
		dead = p.dead
		p.mu.Unlock()
	}
	if dead {
		return errCut
	}
	die := func() {
		p.mu.Lock()
		p.dead = true
		p.mu.Unlock()
		p.cancel()
	}
	switch what {
	case failBefore:
		return errCut
	case failAfter:
		_ = do()
		return errCut
	case dieBefore:
		die()
		return errCut
	case dieAfter:
		_ = do()
		die()
		return errCut
	case dieWithin:
		if half != nil {
			half()
		}
		die()
		return errCut
	case failLate:
		if late != nil {
			time.AfterFunc(time.Second, late)
		}
		return errCut
	}
	return do()
}

func ask[T any](p *process, op string, do func() (T, error)) (T, error) {
	var out T
	err := p.call(op, func() (err error) { out, err = do(); return err }, nil, nil)
	if err != nil {
		var zero T
		return zero, err
	}
	return out, nil
}

func (p *process) Revision(ctx context.Context) (int64, error) {
	return ask(p, "revision", func() (int64, error) { return p.w.db.Revision(ctx) })
}
func (p *process) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	return ask(p, "snapshot", func() (registry.Snapshot, error) { return p.w.db.Snapshot(ctx) })
}
func (p *process) Changes(ctx context.Context, since int64) (registry.Snapshot, error) {
	return ask(p, "changes", func() (registry.Snapshot, error) { return p.w.db.Changes(ctx, since) })
}
func (p *process) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (registry.Lease, bool, error) {
	var ok bool
	l, err := ask(p, "acquire", func() (l registry.Lease, err error) {
		l, ok, err = p.w.db.AcquireLease(ctx, name, holder, ttl)
		return l, err
	})
	return l, ok && err == nil, err
}
func (p *process) RenewLease(ctx context.Context, l registry.Lease) error {
	return p.call("renew", func() error { return p.w.db.RenewLease(ctx, l) }, nil, nil)
}
func (p *process) ReleaseLease(ctx context.Context, l registry.Lease) error {
	return p.call("release", func() error { return p.w.db.ReleaseLease(ctx, l) }, nil, nil)
}
func (p *process) RaiseEpoch(ctx context.Context, l registry.Lease, n int64) (registry.Lease, error) {
	return ask(p, "raise", func() (registry.Lease, error) { return p.w.db.RaiseEpoch(ctx, l, n) })
}
func (p *process) InsertVersion(ctx context.Context, l registry.Lease, v registry.Version, changed []registry.TopologyRecord) error {
	return p.call("insert", func() error { return p.w.db.InsertVersion(ctx, l, v, changed) }, nil, nil)
}
func (p *process) LatestVersion(ctx context.Context) (registry.Version, error) {
	return ask(p, "latest", func() (registry.Version, error) { return p.w.db.LatestVersion(ctx) })
}
func (p *process) LatestRecords(ctx context.Context) ([]registry.TopologyRecord, error) {
	return ask(p, "records", func() ([]registry.TopologyRecord, error) { return p.w.db.LatestRecords(ctx) })
}
func (p *process) TrimVersions(ctx context.Context, keep int) error {
	return p.call("trim", func() error { return p.w.db.TrimVersions(ctx, keep) }, nil, nil)
}
func (p *process) housekeep(ctx context.Context) error {
	return p.call("housekeep", func() error { return p.w.db.Housekeep(ctx) }, nil, nil)
}
func (p *process) Agents(ctx context.Context) ([]registry.Agent, error) {
	return ask(p, "agents", func() ([]registry.Agent, error) { return p.w.db.Agents(ctx) })
}
func (p *process) Streams(ctx context.Context) ([]registry.StreamState, error) {
	return ask(p, "streams", func() ([]registry.StreamState, error) { return p.w.db.Streams(ctx) })
}
func (p *process) AddEvent(ctx context.Context, e registry.Event) error {
	return p.call("event", func() error { return p.w.db.AddEvent(ctx, e) }, nil, nil)
}
func (p *process) HeartbeatEnds(ctx context.Context) (map[int32]int64, error) {
	return ask(p, "ends", func() (map[int32]int64, error) { return p.w.tp.HeartbeatEnds(ctx) })
}
func (p *process) Read(ctx context.Context, from int64, f func(topology.Message)) (topology.Extent, error) {
	return ask(p, "read", func() (topology.Extent, error) { return p.w.tp.Read(ctx, from, f) })
}
func (p *process) Produce(ctx context.Context, messages []topology.Message) error {
	return p.call("produce", func() error { return p.w.tp.Produce(ctx, messages) },
		func() { p.w.tp.write(messages[:len(messages)/2]...) },
		func() { p.w.tp.write(messages...) })
}

// settle lets everything that is due happen for a while.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// converged checks that database, topic, the observer and a newcomer all have what Build says of the registry.
func (w *world) converged() {
	w.t.Helper()
	snap, _ := w.db.Snapshot(w.t.Context())
	in := Input{Instances: snap.Instances, Services: snap.Services, Claims: snap.Claims}
	if snap.Declared != nil {
		in.Declared = declared.Read(Files(snap.Declared.Files)).Config
	}
	want := Build(in).Config
	records, err := topology.Encode(want)
	if err != nil {
		w.t.Fatal(err)
	}
	digest := topology.DigestOf(records)
	newest := w.db.newest()
	if newest.Digest != digest.String() || newest.Records != len(records) {
		w.t.Errorf("the newest version %d is not what the registry says", newest.Version)
	}
	stored, _ := w.db.LatestRecords(w.t.Context())
	inDB := map[string][]byte{}
	for _, r := range stored {
		inDB[r.Key] = r.Value
	}
	if diff := cmp.Diff(recordMap(records), inDB); diff != "" {
		w.t.Errorf("the records in the database differ (-registry +database):\n%s", diff)
	}
	topo, err := w.tp.newcomer()
	if err != nil {
		w.t.Errorf("a newcomer: %v", err)
		return
	}
	if topo.Digest != digest || topo.Version != newest.Version {
		w.t.Errorf("a newcomer gets version %d of digest %s, want %d of %s", topo.Version, topo.Digest, newest.Version, digest)
	}
	if c := w.tp.lastApplied(); c.Digest != digest || c.Version != newest.Version {
		w.t.Errorf("the observer has version %d, want %d", c.Version, newest.Version)
	}
	w.tp.with(func() {
		if d, _ := w.tp.observer.Digest(); d != digest {
			w.t.Errorf("the observer holds other records than it applied")
		}
	})
}

// faults is a random schedule of mishaps: one in n calls.
func faults(rng *rand.Rand, n int, kinds ...mishap) func(int, string) mishap {
	return func(_ int, op string) mishap {
		if rng.IntN(n) > 0 {
			return pass
		}
		return kinds[rng.IntN(len(kinds))]
	}
}
