package topology

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// KeyCommit is the key of the commit record. It is not part of the content.
const KeyCommit = "commit"

// The headers of every record, in decimal: which leader wrote it, and with which version.
const (
	HeaderEpoch   = "epoch"
	HeaderVersion = "version"
)

// MaxCount is the highest epoch or version that a record may carry. Beyond it JSON readers lose digits, and a leader could
// not count above what one stray record claims. What carries more is not ours: agents ignore it, and the leader removes it.
const MaxCount = 1 << 53

// Record is one keyed record of the topic. A nil Value is a tombstone.
type Record struct {
	Key   string
	Value []byte
}

// Message is a record as it stands, or shall stand, in the log.
type Message struct {
	Record
	Pair
	Offset int64 // of a record that was read
}

// Extent is which offsets a log holds: from Start up to, not including, End.
type Extent struct {
	Start, End int64
}

// Pair places a record in the order of all writers: first the leader's epoch, then its version.
type Pair struct {
	Epoch, Version int64
}

// Compare orders pairs: negative when p is older than q.
func (p Pair) Compare(q Pair) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.Version, q.Version))
}

// Valid reports whether both numbers are from 0 to MaxCount.
func (p Pair) Valid() bool {
	return p.Epoch >= 0 && p.Epoch <= MaxCount && p.Version >= 0 && p.Version <= MaxCount
}

// Less reports whether p is older than q.
func (p Pair) Less(q Pair) bool { return p.Compare(q) < 0 }

// Max is the newer of the two.
func (p Pair) Max(q Pair) Pair {
	if p.Less(q) {
		return q
	}
	return p
}

// String is "epoch/version".
func (p Pair) String() string {
	return strconv.FormatInt(p.Epoch, 10) + "/" + strconv.FormatInt(p.Version, 10)
}

// ParseHeaders reads the texts of the two headers. Both must be from 0 to MaxCount.
func ParseHeaders(epoch, version string) (Pair, error) {
	e, err := parseCount(epoch)
	if err != nil {
		return Pair{}, fmt.Errorf("topology: header %s: %w", HeaderEpoch, err)
	}
	v, err := parseCount(version)
	if err != nil {
		return Pair{}, fmt.Errorf("topology: header %s: %w", HeaderVersion, err)
	}
	return Pair{Epoch: e, Version: v}, nil
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > MaxCount {
		return 0, fmt.Errorf("%q is not a decimal number from 0 to 2^53", clip(s))
	}
	return n, nil
}

// Commit closes a version: a reader that holds exactly Count records whose digest is Digest has all of it.
type Commit struct {
	Version int64     `json:"version"`
	Epoch   int64     `json:"epoch"`
	Digest  Digest    `json:"digest"`
	Count   int       `json:"count"` // live records, without the commit
	At      time.Time `json:"at"`    // when the version was made; a repeated commit says it again
	Cause   string    `json:"cause,omitempty"`
}

// Pair is the place of the commit among all writers.
func (c Commit) Pair() Pair { return Pair{Epoch: c.Epoch, Version: c.Version} }

// Encode is the value of the commit record.
func (c Commit) Encode() ([]byte, error) {
	c.At = c.At.UTC()
	return encodeJSON(c)
}

// DecodeCommit reads what Encode writes, strictly.
func DecodeCommit(value []byte) (Commit, error) {
	var c Commit
	if err := decodeJSON(value, &c); err != nil {
		return Commit{}, fmt.Errorf("topology: commit: %w", err)
	}
	if !c.Pair().Valid() || c.Count < 0 {
		return Commit{}, fmt.Errorf("topology: commit: version %d, epoch %d or count %d is out of range", c.Version, c.Epoch, c.Count)
	}
	return c, nil
}

// kind is the first segment of a key.
type kind string

const (
	kindService  kind = "service"
	kindUpstream kind = "upstream"
	kindUpstrand kind = "upstrand"
	kindRoute    kind = "route"
)

// whole is the part number of a service that is not split.
const whole = -1

// name is a parsed key.
type name struct {
	kind kind
	name string // of the service, upstream or upstrand
	part int    // service: number of the part, or whole
	host string // route
	path string // route
}

// ServiceKey is the key of a service record that is not split.
func ServiceKey(service string) string { return string(kindService) + "/" + service }

// PartKey is the key of part k of a split service.
func PartKey(service string, k int) string { return ServiceKey(service) + "/" + strconv.Itoa(k) }

// UpstreamKey is the key of an upstream record.
func UpstreamKey(upstream string) string { return string(kindUpstream) + "/" + upstream }

// UpstrandKey is the key of an upstrand record.
func UpstrandKey(upstrand string) string { return string(kindUpstrand) + "/" + upstrand }

// RouteKey is the key of a route record: the path's leading slash parts it from the host.
func RouteKey(host, path string) string { return string(kindRoute) + "/" + host + path }

func parseKey(key string) (name, error) {
	k, rest, ok := strings.Cut(key, "/")
	if !ok || rest == "" {
		return name{}, fmt.Errorf("topology: key %q: want KIND/NAME", clip(key))
	}
	n := name{kind: kind(k), name: rest, part: whole}
	switch n.kind {
	case kindUpstream, kindUpstrand:
		return n, nil
	case kindService:
		return parseServiceKey(key, n)
	case kindRoute:
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			return name{}, fmt.Errorf("topology: key %q: want route/HOST/PATH", clip(key))
		}
		n.name, n.host, n.path = "", rest[:i], rest[i:]
		return n, nil
	}
	return name{}, fmt.Errorf("topology: key %q: unknown kind", clip(key))
}

func parseServiceKey(key string, n name) (name, error) {
	service, part, split := strings.Cut(n.name, "/")
	if !split {
		return n, nil
	}
	k, err := strconv.Atoi(part)
	if err != nil || k < 0 || k >= MaxParts || strconv.Itoa(k) != part || service == "" {
		return name{}, fmt.Errorf("topology: key %q: want service/NAME/PART", clip(key))
	}
	n.name, n.part = service, k
	return n, nil
}

// ServiceOf is the service that a key's record, whole or in parts, is of.
func ServiceOf(key string) (service string, ok bool) {
	n, err := parseKey(key)
	return n.name, err == nil && n.kind == kindService
}
