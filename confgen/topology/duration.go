package topology

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that JSON carries as text, such as "10s" or "1m30s". It is never negative.
type Duration time.Duration

// MarshalText writes the one form that UnmarshalText reads back to the same value.
func (d Duration) MarshalText() ([]byte, error) {
	if d < 0 {
		return nil, fmt.Errorf("topology: negative duration %s", time.Duration(d))
	}
	return []byte(time.Duration(d).String()), nil
}

// UnmarshalText reads what time.ParseDuration reads, without a sign below zero.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("topology: duration %q: %w", text, err)
	}
	if v < 0 {
		return fmt.Errorf("topology: negative duration %q", text)
	}
	*d = Duration(v)
	return nil
}

// String is the text that JSON carries.
func (d Duration) String() string { return time.Duration(d).String() }
