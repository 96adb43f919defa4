package heartbeat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration whose JSON form is a string such as "10s", "1m30s" or "500ms". A number of seconds is
// read too. Beats carry whole milliseconds.
type Duration time.Duration

// String is the shortest form that time.ParseDuration reads back: 1m, not 1m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText makes the JSON form a string.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON reads a string or a number of seconds.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var ok bool
	var v Duration
	if len(raw) > 1 && raw[0] == '"' {
		s, err := strconv.Unquote(string(raw))
		if err != nil {
			return fmt.Errorf("duration %s: not a plain string", shown(raw))
		}
		v, ok = parseDuration(s)
	} else {
		v, ok = parseSeconds(raw)
	}
	if !ok {
		return fmt.Errorf("duration %s: not %s", shown(raw), allowedDuration)
	}
	*d = v
	return nil
}

const allowedDuration = `a duration such as "10s" or "500ms", or a number of seconds`

func parseDuration(s string) (Duration, bool) {
	d, err := time.ParseDuration(s)
	return Duration(d), err == nil
}

// parseSeconds reads a JSON number. It goes by way of a float: exact for whole milliseconds of up to centuries.
func parseSeconds(raw []byte) (Duration, bool) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.Abs(f) > 1e9 {
		return 0, false
	}
	return Duration(math.Round(f * float64(time.Second))), true
}
