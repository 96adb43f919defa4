package confgen

import (
	"bytes"

	"github.com/upstrand/upstrand/confgen/topology"
)

// content is a set of live records with its digest.
type content struct {
	records map[string][]byte
	digest  topology.Digest
}

func newContent() content { return content{records: map[string][]byte{}} }

// set puts a record in place of the one of its key; nil takes it out. It reports whether that changed anything.
func (c *content) set(key string, value []byte) bool {
	old, had := c.records[key]
	if had == (value != nil) && bytes.Equal(old, value) {
		return false
	}
	if had {
		c.digest.Remove(key, old)
		delete(c.records, key)
	}
	if value != nil {
		c.digest.Add(key, value)
		c.records[key] = value
	}
	return true
}

// same reports whether a key stands for the same in both.
func (c *content) same(o *content, key string) bool {
	a, inA := c.records[key]
	b, inB := o.records[key]
	return inA == inB && bytes.Equal(a, b)
}
