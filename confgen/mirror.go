package confgen

import (
	"bytes"

	"github.com/upstrand/upstrand/confgen/topology"
)

// mirror is the topic as its records stand last in the log, which is what compaction leaves and a newcomer reads. It
// differs from a topology.Replica, which is what an agent that has followed for long holds: a leader must see to it that
// both come to the same.
type mirror struct {
	last    map[string]lastRecord
	floor   topology.Pair // newest of the commits so far: what is older came from a leader that had lost the lead
	commit  *topology.Message
	epoch   int64           // highest that came by, as see and place count it
	version int64           // likewise, on its own
	high    []topology.Pair // records not placed yet
	extent  topology.Extent
}

// lastRecord is the last record of a key.
type lastRecord struct {
	value  []byte // nil: a tombstone
	offset int64
	high   topology.Pair
	// stale says that the record is older than one before it, so those who hold that one ignore it.
	stale bool
}

func newMirror() *mirror { return &mirror{last: map[string]lastRecord{}} }

// take adds the next record of the log.
func (m *mirror) take(msg topology.Message) {
	if !msg.Pair.Valid() {
		msg.Pair = topology.Pair{} // agents ignore it, too: older than all else, so it is written over
	}
	m.see(msg.Pair)
	if msg.Key == topology.KeyCommit {
		m.commit = &msg
		m.floor = m.floor.Max(msg.Pair)
		return
	}
	old := m.last[msg.Key]
	r := lastRecord{value: msg.Value, offset: msg.Offset, high: old.high.Max(msg.Pair)}
	r.stale = msg.Pair.Less(r.high) || msg.Pair.Less(m.floor)
	if r.value == nil && !r.stale {
		delete(m.last, msg.Key) // what comes later and is older than the tombstone is below the floor, too
		return
	}
	m.last[msg.Key] = r
}

// highestFollowed is the highest epoch and version that a leader raises its own above. Half of the range is left for what
// comes after it.
const highestFollowed = topology.MaxCount / 2

// see takes a record's numbers.
func (m *mirror) see(p topology.Pair) {
	if p.Version > highestFollowed {
		m.high = append(m.high, p)
		return
	}
	m.epoch, m.version = max(m.epoch, p.Epoch), max(m.version, p.Version)
}

// place deals with versions too high to count on from, once the database's newest one is known. One that this does not
// know is not followed: what stands in an epoch after that record's is newer than it, too.
func (m *mirror) place(known int64) {
	for _, p := range m.high {
		if p.Version > known {
			p = topology.Pair{Epoch: p.Epoch + 1}
		}
		m.epoch, m.version = max(m.epoch, p.Epoch), max(m.version, p.Version)
	}
	m.high = nil
}

// pair is the highest epoch and, on its own, the highest version that came by.
func (m *mirror) pair() topology.Pair { return topology.Pair{Epoch: m.epoch, Version: m.version} }

// holds reports whether everybody who reads the topic finds value under the key.
func (m *mirror) holds(key string, value []byte) bool {
	r, ok := m.last[key]
	return !r.stale && ok == (value != nil) && bytes.Equal(r.value, value)
}

// committed reports whether the last commit in the log is the one of that pair, digest and count.
func (m *mirror) committed(p topology.Pair, d topology.Digest, count int) bool {
	if m.commit == nil || m.commit.Pair != p || m.floor != p {
		return false
	}
	c, err := topology.DecodeCommit(m.commit.Value)
	return err == nil && c.Pair() == p && c.Digest == d && c.Count == count
}

// lost reports whether the log is not the one that was read: it ends earlier, or starts behind a record that was the last
// of its key. Compaction moves the start, too, but leaves those.
func (m *mirror) lost(now topology.Extent) bool {
	if now.End < m.extent.End {
		return true
	}
	if now.Start <= m.extent.Start {
		return false
	}
	if m.commit != nil && m.commit.Offset < now.Start {
		return true
	}
	for _, r := range m.last {
		if r.value != nil && r.offset < now.Start {
			return true
		}
	}
	return false
}
