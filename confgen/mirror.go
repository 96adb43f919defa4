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
	epoch   int64 // highest that came by
	version int64 // likewise, on its own
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
	m.epoch, m.version = max(m.epoch, msg.Epoch), max(m.version, msg.Version)
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
