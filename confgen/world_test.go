package confgen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// database is the registry in memory, with the semantics that registry.Store promises. Its clock is time.Now, which
// synctest moves.
type database struct {
	mu        sync.Mutex
	revision  int64
	dense     int64
	instances map[string]registry.Instance
	services  map[string]registry.Service
	claims    map[string]registry.RouteClaim
	removed   map[string]int64 // "service/NAME", "claim/PATH" → revision
	declared  registry.Declaration

	holder  string
	epoch   int64
	expires time.Time

	versions []registry.Version
	records  [][]registry.TopologyRecord // of each version

	agents  map[string]topology.Pair
	streams map[int32]registry.StreamState
	events  []registry.Event
	down    error // set: every call fails with it
	tidied  int
	trimmed int
}

func newDatabase() *database {
	return &database{
		instances: map[string]registry.Instance{}, services: map[string]registry.Service{}, claims: map[string]registry.RouteClaim{},
		removed: map[string]int64{}, agents: map[string]topology.Pair{}, streams: map[int32]registry.StreamState{},
	}
}

// clone is a backup.
func (d *database) clone() *database {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &database{
		revision: d.revision, dense: d.dense, instances: maps.Clone(d.instances), services: maps.Clone(d.services), claims: maps.Clone(d.claims),
		removed: maps.Clone(d.removed), holder: d.holder, epoch: d.epoch, expires: d.expires,
		versions: slices.Clone(d.versions), records: slices.Clone(d.records),
		agents: maps.Clone(d.agents), streams: maps.Clone(d.streams), events: slices.Clone(d.events), declared: d.declared,
	}
}

// restore puts a backup in place.
func (d *database) restore(b *database) {
	b = b.clone()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revision, d.dense, d.instances, d.services, d.claims, d.removed = b.revision, b.dense, b.instances, b.services, b.claims, b.removed
	d.holder, d.epoch, d.expires, d.versions, d.records = b.holder, b.epoch, b.expires, b.versions, b.records
	d.agents, d.streams, d.declared = b.agents, b.streams, b.declared
}

// put adds or changes an instance, named service/id.
func (d *database) put(name string, change func(*registry.Instance)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	service, id, _ := cutName(name)
	in, ok := d.instances[name]
	if !ok {
		d.dense++
		in = registry.Instance{DenseID: d.dense, Service: service, ID: id, Status: registry.StatusUp, Liveness: registry.Live, StaleAfter: 3 * time.Second,
			Attrs: registry.Attrs{Scheme: "http", IP: fmt.Sprintf("10.0.%d.%d", d.dense>>8, d.dense&255), Port: 80, Weight: 1, MaxFails: 1, FailTimeout: 10 * time.Second}}
	}
	if change != nil {
		change(&in)
	}
	d.revision++
	in.Revision = d.revision
	d.instances[name] = in
	if _, ok := d.services[service]; !ok {
		d.services[service] = registry.Service{Name: service, Revision: d.revision}
		d.claims["/"+service] = registry.RouteClaim{Path: "/" + service, Service: service, ClaimedAt: d.revision, Revision: d.revision}
		delete(d.removed, "service/"+service)
		delete(d.removed, "claim//"+service)
	}
}

func cutName(name string) (service, id string, ok bool) {
	for i := range name {
		if name[i] == '/' {
			return name[:i], name[i+1:], true
		}
	}
	return name, "", false
}

func (d *database) join(names ...string) {
	for _, name := range names {
		d.put(name, func(in *registry.Instance) { in.Liveness = registry.Live })
	}
}

func (d *database) leave(names ...string) {
	for _, name := range names {
		d.put(name, func(in *registry.Instance) { in.Liveness = registry.Left })
	}
}

// declare puts a file in place of the one of its name; without a text it goes.
func (d *database) declare(name, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revision++
	f := registry.DeclaredFile{Name: name, Text: text, Revision: d.declared.Revision + 1, Deleted: text == "", Author: "ops", RegistryRevision: d.revision}
	files := slices.DeleteFunc(slices.Clone(d.declared.Files), func(o registry.DeclaredFile) bool { return o.Name == name })
	if !f.Deleted {
		files = append(files, f)
	}
	d.declared = registry.Declaration{Revision: f.Revision, Files: files, Last: f}
}

// forget deletes a service whose instances are all gone.
func (d *database) forget(service string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.services[service]; !ok {
		return
	}
	for name, in := range d.instances {
		if in.Service == service {
			if in.Liveness.Routable() {
				return
			}
			delete(d.instances, name)
		}
	}
	d.revision++
	delete(d.services, service)
	delete(d.claims, "/"+service)
	d.removed["service/"+service], d.removed["claim//"+service] = d.revision, d.revision
}

func (d *database) Revision(ctx context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.revision, d.down
}

func (d *database) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	return d.read(-1)
}

func (d *database) Changes(ctx context.Context, since int64) (registry.Snapshot, error) {
	return d.read(since)
}

func (d *database) read(since int64) (registry.Snapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := registry.Snapshot{Revision: d.revision}
	for _, in := range d.instances {
		if in.Revision > since && (since >= 0 || in.Liveness.Routable()) {
			s.Instances = append(s.Instances, in)
		}
	}
	if d.declared.Last.RegistryRevision > since {
		declared := d.declared
		s.Declared = &declared
	}
	slices.SortFunc(s.Instances, func(a, b registry.Instance) int { return int(a.DenseID - b.DenseID) })
	for _, sv := range d.services {
		if sv.Revision > since {
			s.Services = append(s.Services, sv)
		}
	}
	for _, c := range d.claims {
		if c.Revision > since {
			s.Claims = append(s.Claims, c)
		}
	}
	if since >= 0 {
		for key, rev := range d.removed {
			if kind, name, _ := cutName(key); rev > since && kind == "service" {
				s.RemovedServices = append(s.RemovedServices, name)
			} else if rev > since {
				s.RemovedClaims = append(s.RemovedClaims, name)
			}
		}
	}
	return s, d.down
}

func (d *database) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (registry.Lease, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down != nil {
		return registry.Lease{}, false, d.down
	}
	if d.holder != "" && time.Now().Before(d.expires) {
		return registry.Lease{Name: name, Holder: d.holder}, false, nil
	}
	d.epoch++
	d.holder, d.expires = holder, time.Now().Add(ttl)
	return registry.Lease{Name: name, Holder: holder, Epoch: d.epoch, TTL: ttl}, true, nil
}

// owns is the fence; d.mu must be held.
func (d *database) owns(l registry.Lease) error {
	if d.down != nil {
		return d.down
	}
	if d.holder != l.Holder || d.epoch != l.Epoch || !time.Now().Before(d.expires) {
		return fmt.Errorf("lease of %s: %w", l.Holder, registry.ErrFenced)
	}
	return nil
}

func (d *database) RenewLease(ctx context.Context, l registry.Lease) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.owns(l); err != nil {
		return err
	}
	d.expires = time.Now().Add(l.TTL)
	return nil
}

func (d *database) ReleaseLease(ctx context.Context, l registry.Lease) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.owns(l); err != nil {
		return err
	}
	d.holder = ""
	return nil
}

func (d *database) RaiseEpoch(ctx context.Context, l registry.Lease, atLeast int64) (registry.Lease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.owns(l); err != nil {
		return l, err
	}
	d.epoch = max(d.epoch, atLeast)
	l.Epoch = d.epoch
	return l, nil
}

func (d *database) InsertVersion(ctx context.Context, l registry.Lease, v registry.Version, changed []registry.TopologyRecord) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.owns(l); err != nil {
		return err
	}
	if n := len(d.versions); n > 0 && d.versions[n-1].Version >= v.Version {
		return errors.New("duplicate version")
	}
	d.versions = append(d.versions, v)
	d.records = append(d.records, slices.Clone(changed))
	return nil
}

func (d *database) LatestVersion(ctx context.Context) (registry.Version, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down != nil {
		return registry.Version{}, d.down
	}
	if len(d.versions) == 0 {
		return registry.Version{}, registry.ErrNotFound
	}
	return d.versions[len(d.versions)-1], nil
}

func (d *database) LatestRecords(ctx context.Context) ([]registry.TopologyRecord, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	content := map[string][]byte{}
	for _, records := range d.records {
		for _, r := range records {
			if r.Value == nil {
				delete(content, r.Key)
			} else {
				content[r.Key] = r.Value
			}
		}
	}
	var out []registry.TopologyRecord
	for k, v := range content {
		out = append(out, registry.TopologyRecord{Key: k, Value: v})
	}
	return out, d.down
}

func (d *database) TrimVersions(ctx context.Context, keep int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trimmed++
	return d.down
}

func (d *database) Housekeep(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tidied++
	return d.down
}

func (d *database) Agents(ctx context.Context) ([]registry.Agent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []registry.Agent
	for _, p := range d.agents {
		raw, _ := json.Marshal(map[string]string{"topology_epoch": strconv.FormatInt(p.Epoch, 10), "topology_version": strconv.FormatInt(p.Version, 10), "last_error": ""})
		out = append(out, registry.Agent{Report: raw})
	}
	out = append(out, registry.Agent{Report: nil}, registry.Agent{Report: json.RawMessage(`{"topology_version":7}`)})
	return out, d.down
}

func (d *database) Streams(ctx context.Context) ([]registry.StreamState, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.streams)), d.down
}

func (d *database) AddEvent(ctx context.Context, e registry.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
	return d.down
}

func (d *database) with(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// kinds of the events so far.
func (d *database) kinds() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, e := range d.events {
		out = append(out, e.Kind)
	}
	return out
}

func (d *database) newest() registry.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.versions) == 0 {
		return registry.Version{}
	}
	return d.versions[len(d.versions)-1]
}
