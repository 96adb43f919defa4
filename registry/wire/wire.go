// Package wire is the JSON of the registry's HTTP API: what the server (registry/api) writes and what the client
// (registry/client) and the operators' commands read. The doc, format and enum tags are where the OpenAPI document
// takes its words from.
//
// It holds values only: no requests, no database and no rules; and it imports nothing of this project, so that a
// tool can use it without pulling in the registry.
package wire

import (
	"fmt"
	"time"
)

// timeLayout has always six digits of a second, so that times sort as text.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Time is a moment in Unix µs, written as RFC 3339 in UTC with µs.
type Time int64

// TimeOf is t, cut to µs.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Time is t as a time.Time in UTC.
func (t Time) Time() time.Time { return time.UnixMicro(int64(t)).UTC() }

// String is t as RFC 3339 with µs.
func (t Time) String() string { return t.Time().Format(timeLayout) }

// MarshalText writes t as RFC 3339 with µs.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads RFC 3339 with any zone and precision; what is below 1 µs is cut off.
func (t *Time) UnmarshalText(text []byte) error {
	v, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return fmt.Errorf("time %q is not RFC 3339, such as 2026-11-29T10:00:00Z", text)
	}
	*t = TimeOf(v)
	return nil
}
