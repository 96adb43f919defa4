package topology

import (
	"cmp"
	"fmt"
	"slices"
)

const (
	// PartLimit is the size in bytes above which a service's record is split. One join rewrites one part.
	PartLimit = 256 << 10
	// MaxParts bounds the number of parts of one service; it is a power of two.
	MaxParts = 1 << 12
)

// Encode writes a Config as keyed records, sorted by key, each service in as few parts as it needs. The same Config
// always gives the same bytes. It refuses what Validate refuses.
func Encode(c *Config) ([]Record, error) { return EncodeLike(c, nil) }

// EncodeLike is Encode for a topic where services are split already: parts says into how many records a service is split
// there (0 or 1: whole), so that a service whose size moves around a limit is not split and joined again and again.
func EncodeLike(c *Config, parts func(service string) int) ([]Record, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	records := make([]Record, 0, len(c.Services)+len(c.Upstreams)+len(c.Upstrands)+len(c.Routes))
	for _, s := range c.Services {
		now := 0
		if parts != nil {
			now = parts(s.Name)
		}
		rs, err := EncodeService(s, now)
		if err != nil {
			return nil, err
		}
		records = append(records, rs...)
	}
	rest, err := encodeEach(records, c.Upstreams, EncodeUpstream)
	if err != nil {
		return nil, err
	}
	if rest, err = encodeEach(rest, c.Upstrands, EncodeUpstrand); err != nil {
		return nil, err
	}
	if rest, err = encodeEach(rest, c.Routes, EncodeRoute); err != nil {
		return nil, err
	}
	slices.SortFunc(rest, func(a, b Record) int { return cmp.Compare(a.Key, b.Key) })
	return rest, nil
}

func encodeEach[T any](to []Record, items []T, encode func(T) (Record, error)) ([]Record, error) {
	for _, item := range items {
		r, err := encode(item)
		if err != nil {
			return nil, err
		}
		to = append(to, r)
	}
	return to, nil
}

// EncodeUpstream is the record of one upstream.
func EncodeUpstream(u Upstream) (Record, error) {
	if err := u.validate(); err != nil {
		return Record{}, err
	}
	return encodeRecord(UpstreamKey(u.Name), u)
}

// EncodeUpstrand is the record of one upstrand.
func EncodeUpstrand(u Upstrand) (Record, error) {
	if err := u.validate(); err != nil {
		return Record{}, err
	}
	return encodeRecord(UpstrandKey(u.Name), u)
}

// EncodeRoute is the record of one route.
func EncodeRoute(r Route) (Record, error) {
	if err := r.validate(); err != nil {
		return Record{}, err
	}
	return encodeRecord(RouteKey(r.Host, r.Path), r)
}

func encodeRecord(key string, v any) (Record, error) {
	value, err := encodeJSON(v)
	if err != nil {
		return Record{}, fmt.Errorf("topology: encode %s: %w", key, err)
	}
	return Record{Key: key, Value: value}, nil
}
