package topology

import (
	"bytes"
	"errors"
	"fmt"
)

// Errors of Replica.Commit that a caller decides on.
var (
	// ErrDigest: the records held are not those that the commit speaks of. Keep the last good topology and read again
	// from the start.
	ErrDigest = errors.New("topology: records held do not give the commit's digest")
	// ErrOld: the commit is older than the last one applied; its writer has lost the lead. Ignore it.
	ErrOld = errors.New("topology: commit of an older leader or version")
)

// Replica is a pure fold of the topic, used by agents and by the leader alike: feed it every record in the order of the
// log, and it says at a commit what the topology is. It decodes only what changed between two commits. It is not safe
// for concurrent use.
//
// Kafka does not fence writers, so the Replica does: a record whose pair (epoch, version) is older than the one held
// for its key, or than the last applied commit, comes from a leader that lost the lead and is ignored.
type Replica struct {
	entries map[string]*entry
	digest  Digest
	count   int             // live records
	dirty   map[string]bool // keys changed since the last assembly
	tombs   map[string]bool // keys of the tombstones in entries
	items   map[string]item // decoded, as of the last assembly
	parts   map[string]map[int]*Service
	config  *Config // as of the last assembly
	applied Commit
	highest Pair // of all records that came by, also of ignored ones
}

type entry struct {
	value []byte // nil: a tombstone
	pair  Pair
}

// NewReplica is a Replica of an empty topic.
func NewReplica() *Replica {
	return &Replica{
		entries: map[string]*entry{},
		dirty:   map[string]bool{},
		tombs:   map[string]bool{},
		items:   map[string]item{},
		parts:   map[string]map[int]*Service{},
		config:  &Config{},
	}
}

// Put takes one record that is not a commit; value nil is a tombstone. It keeps value, which must not change any more.
// It reports whether the record counts; false means that it is older than what is held, or that its pair is not Valid.
func (r *Replica) Put(key string, value []byte, epoch, version int64) bool {
	p := Pair{Epoch: epoch, Version: version}
	if !p.Valid() {
		return false
	}
	r.highest = r.highest.Max(p)
	held := r.entries[key]
	if p.Less(r.applied.Pair()) || (held != nil && p.Less(held.pair)) {
		return false
	}
	if held == nil {
		held = &entry{}
		r.entries[key] = held
	}
	held.pair = p
	if value == nil {
		r.tombs[key] = true
	} else {
		delete(r.tombs, key)
	}
	if (held.value == nil) == (value == nil) && bytes.Equal(held.value, value) {
		return true
	}
	if held.value != nil {
		r.digest.Remove(key, held.value)
		r.count--
	}
	if value != nil {
		r.digest.Add(key, value)
		r.count++
	}
	held.value = value
	r.dirty[key] = true
	return true
}

// Commit takes the value of a commit record with its headers and says what the topology is. The Config is the very one
// of the commit before (the same pointer) when no record changed; unchanged services keep the slice of their instances.
//
// Errors: ErrOld and ErrDigest as they say; another error means that the commit or a record can't be read. After an
// error the Replica goes on as before, and a later commit may succeed. While a topic is read from its start compaction
// makes ErrDigest ordinary for all commits but the last.
func (r *Replica) Commit(value []byte, epoch, version int64) (*Topology, error) {
	p := Pair{Epoch: epoch, Version: version}
	if !p.Valid() {
		return nil, fmt.Errorf("topology: commit %s is out of range", p)
	}
	r.highest = r.highest.Max(p)
	c, err := DecodeCommit(value)
	if err != nil {
		return nil, err
	}
	if c.Pair() != p {
		return nil, fmt.Errorf("topology: commit %s has headers %s", c.Pair(), p)
	}
	if p.Less(r.applied.Pair()) {
		return nil, fmt.Errorf("%w: %s after %s", ErrOld, p, r.applied.Pair())
	}
	if c.Digest != r.digest || c.Count != r.count {
		return nil, fmt.Errorf("%w: commit %s wants %d records of digest %s, held are %d of %s",
			ErrDigest, p, c.Count, c.Digest, r.count, r.digest)
	}
	config, err := r.assemble()
	if err != nil {
		return nil, fmt.Errorf("topology: version %d: %w", c.Version, err)
	}
	r.applied = c
	r.dropTombs()
	return &Topology{Version: c.Version, Epoch: c.Epoch, Digest: c.Digest, At: c.At, Config: config}, nil
}

// dropTombs forgets the tombstones that the applied commit covers: what they guard against is older than the commit and
// ignored for that.
func (r *Replica) dropTombs() {
	for key := range r.tombs {
		if !r.applied.Pair().Less(r.entries[key].pair) {
			delete(r.entries, key)
			delete(r.tombs, key)
		}
	}
}

// Applied is the last commit that succeeded, the zero Commit before the first.
func (r *Replica) Applied() Commit { return r.applied }

// Highest is the newest pair of all records that came by, ignored ones and commits included.
func (r *Replica) Highest() Pair { return r.highest }

// Digest is that of the live records held now, which may be ahead of the last commit.
func (r *Replica) Digest() (Digest, int) { return r.digest, r.count }

// Get is the live value held for a key, nil when there is none.
func (r *Replica) Get(key string) []byte {
	if e := r.entries[key]; e != nil {
		return e.value
	}
	return nil
}

// Records calls f for each live record, in no order, until f returns false.
func (r *Replica) Records(f func(Record) bool) {
	for key, e := range r.entries {
		if e.value != nil && !f(Record{Key: key, Value: e.value}) {
			return
		}
	}
}
