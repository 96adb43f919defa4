package confgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/upstrand/upstrand/confgen/topology"
)

// conflog is topic_upstream_conf and the ends of topic_heartbeat in memory. An observer follows it from the beginning, as
// an agent does.
type conflog struct {
	t        testing.TB
	mu       sync.Mutex
	start    int64
	messages []topology.Message // from start on
	ends     map[int32]int64
	down     error

	observer  *topology.Replica
	applied   []topology.Commit // by the observer, in order
	unmatched int               // commits that the observer could not reproduce
	commits   int
}

func newConflog(t testing.TB) *conflog {
	return &conflog{t: t, ends: map[int32]int64{0: 0}, observer: topology.NewReplica()}
}

// append is what a broker does; l.mu must be held.
func (l *conflog) append(m topology.Message) {
	m.Offset = l.start + int64(len(l.messages))
	l.messages = append(l.messages, m)
	if m.Key != topology.KeyCommit {
		l.observer.Put(m.Key, m.Value, m.Epoch, m.Version)
		return
	}
	l.commits++
	topo, err := l.observer.Commit(m.Value, m.Epoch, m.Version)
	switch {
	case errors.Is(err, topology.ErrOld):
	case err != nil:
		l.unmatched++
	default:
		if n := len(l.applied); n > 0 {
			last := l.applied[n-1]
			if topo.Version < last.Version || topo.Epoch < last.Epoch {
				l.t.Errorf("the observer went from %s back to %d/%d", last.Pair(), topo.Epoch, topo.Version)
			}
			if topo.Version == last.Version && topo.Digest != last.Digest {
				l.t.Errorf("version %d has two contents", topo.Version)
			}
		}
		l.applied = append(l.applied, l.observer.Applied())
	}
}

func (l *conflog) write(messages ...topology.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range messages {
		l.append(m)
	}
}

func (l *conflog) Produce(ctx context.Context, messages []topology.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return l.down
	}
	for _, m := range messages {
		l.append(m)
	}
	return nil
}

func (l *conflog) Read(ctx context.Context, from int64, f func(topology.Message)) (topology.Extent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return topology.Extent{}, l.down
	}
	for _, m := range l.messages {
		if m.Offset >= from {
			f(m)
		}
	}
	return topology.Extent{Start: l.start, End: l.start + int64(len(l.messages))}, nil
}

func (l *conflog) HeartbeatEnds(ctx context.Context) (map[int32]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[int32]int64{}
	for p, end := range l.ends {
		out[p] = end
	}
	return out, l.down
}

// recreate makes the topic anew; agents that follow read from its start, which the observer here does not do: it
// keeps what it has, as an agent does with its last good topology.
func (l *conflog) recreate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.messages = 0, nil
	l.observer = topology.NewReplica()
}

// wipe deletes all records, but not the topic.
func (l *conflog) wipe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start, l.messages = l.start+int64(len(l.messages)), nil
	l.observer = topology.NewReplica()
}

// newcomer reads the compacted log, and gives the last topology that a commit gave.
func (l *conflog) newcomer() (*topology.Topology, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := map[string]int{}
	for i, m := range l.messages {
		last[m.Key] = i
	}
	r := topology.NewReplica()
	var topo *topology.Topology
	err := errors.New("no commit")
	for i, m := range l.messages {
		if last[m.Key] != i {
			continue
		}
		if m.Key != topology.KeyCommit {
			r.Put(m.Key, m.Value, m.Epoch, m.Version)
			err = fmt.Errorf("record %s after the last commit", m.Key)
			continue
		}
		topo, err = r.Commit(m.Value, m.Epoch, m.Version)
	}
	return topo, err
}

func (l *conflog) lastApplied() topology.Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.applied) == 0 {
		return topology.Commit{}
	}
	return l.applied[len(l.applied)-1]
}

func (l *conflog) with(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}
