package topology

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
)

// Digest is the digest of a set of records: the sum modulo 2^256 of SHA-256 over each record's length-prefixed key and
// value. The order of the records does not count, and adding or removing one costs that one only, however many there
// are. The zero Digest is that of the empty set. It guards against loss and mixing of records, not against somebody
// who writes to the topic on purpose.
type Digest [32]byte

// Add puts a record into the set.
func (d *Digest) Add(key string, value []byte) { d.sum(element(key, value), false) }

// Remove takes a record, which must be in the set, out of it.
func (d *Digest) Remove(key string, value []byte) { d.sum(element(key, value), true) }

// sum adds or subtracts e modulo 2^256; both are big-endian numbers.
func (d *Digest) sum(e [32]byte, minus bool) {
	var carry uint64
	for i := 24; i >= 0; i -= 8 {
		a, b := binary.BigEndian.Uint64(d[i:]), binary.BigEndian.Uint64(e[i:])
		var s uint64
		if minus {
			s, carry = bits.Sub64(a, b, carry)
		} else {
			s, carry = bits.Add64(a, b, carry)
		}
		binary.BigEndian.PutUint64(d[i:], s)
	}
}

func element(key string, value []byte) [32]byte {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(key)))
	h.Write(n[:])
	h.Write([]byte(key))
	binary.BigEndian.PutUint64(n[:], uint64(len(value)))
	h.Write(n[:])
	h.Write(value)
	var out [32]byte
	h.Sum(out[:0])
	return out
}

// DigestOf is the digest of the records, none of which may be a tombstone or the commit.
func DigestOf(records []Record) Digest {
	var d Digest
	for _, r := range records {
		d.Add(r.Key, r.Value)
	}
	return d
}

// String is 64 lower-case hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText is String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 hex digits.
func (d *Digest) UnmarshalText(text []byte) error {
	v, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = v
	return nil
}

// ParseDigest reads what String writes.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != 2*len(d) {
		return Digest{}, fmt.Errorf("topology: digest %q: want %d hex digits", clip(s), 2*len(d))
	}
	if _, err := hex.Decode(d[:], []byte(s)); err != nil {
		return Digest{}, fmt.Errorf("topology: digest %q: %w", clip(s), err)
	}
	return d, nil
}

// clip bounds foreign text that goes into an error.
func clip(s string) string {
	if len(s) > 120 {
		return s[:120] + "…"
	}
	return s
}
