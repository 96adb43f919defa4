package topology

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// ParseTime reads nginx's time with a resolution of a millisecond: 500ms, 10s, 1m30s, "1h 30m", 2d, 1w. A number alone is
// seconds. The units go from the largest to the smallest, each once. At most 2^31-1 ms.
func ParseTime(text string) (time.Duration, error) {
	return parseTime(text, time.Millisecond, "a time such as 10s, 500ms or 1m30s")
}

// ParseSeconds reads nginx's time in whole seconds: as ParseTime, without ms, and with M (30 days) and y (365 days). At
// most 2^31-1 s.
func ParseSeconds(text string) (time.Duration, error) {
	return parseTime(text, time.Second, "a time in whole seconds, such as 10s or 1m")
}

// timeUnit is one unit in the order in which nginx wants them.
type timeUnit struct {
	suffix string
	is     time.Duration
}

const day = 24 * time.Hour

var timeUnits = []timeUnit{
	{"y", 365 * day}, {"M", 30 * day}, {"w", 7 * day}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
}

func parseTime(text string, step time.Duration, want string) (time.Duration, error) {
	bad := fmt.Errorf("%q: want %s", clip(text), want)
	var total time.Duration
	limit := time.Duration(math.MaxInt32) * step
	next := 0 // the units from here on may follow
	rest := text
	for rest != "" {
		n, tail, ok := cutNumber(rest)
		if !ok {
			return 0, bad
		}
		suffix, after := cutLetters(tail)
		if suffix == "" {
			suffix = "s"
		}
		at := unitAt(suffix, step)
		if at < next || n > int64(limit/timeUnits[at].is) {
			return 0, bad
		}
		total += time.Duration(n) * timeUnits[at].is
		next, rest = at+1, strings.TrimLeft(after, " ")
	}
	if text == "" || total > limit || strings.HasSuffix(text, " ") {
		return 0, bad
	}
	return total, nil
}

// unitAt is the place of a unit; -1 for one that is none at this resolution.
func unitAt(suffix string, step time.Duration) int {
	for i, u := range timeUnits {
		if u.suffix != suffix {
			continue
		}
		if u.is < step || (step < time.Second && u.is > 7*day) {
			return -1
		}
		return i
	}
	return -1
}

// ParseSize reads nginx's size: 512, 64k, 1m, 2g, in bytes; the letters of either case.
func ParseSize(text string) (int64, error) {
	n, suffix, ok := cutNumber(text)
	shift := map[string]uint{"": 0, "k": 10, "m": 20, "g": 30}
	by, known := shift[strings.ToLower(suffix)]
	if !ok || !known || n > math.MaxInt64>>by {
		return 0, fmt.Errorf("%q: want a size in bytes such as 512, 64k, 1m or 2g", clip(text))
	}
	return n << by, nil
}

// ParseNumber reads a decimal number from least to 2^31-1.
func ParseNumber(text string, least int) (int, error) {
	n, rest, ok := cutNumber(text)
	if !ok || rest != "" || n > math.MaxInt32 || int(n) < least {
		return 0, fmt.Errorf("%q: want a number from %d to %d", clip(text), least, math.MaxInt32)
	}
	return int(n), nil
}

// cutNumber takes digits from the front; not ok without one or above 2^62.
func cutNumber(s string) (n int64, rest string, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		if n > math.MaxInt64/32 {
			return 0, s, false
		}
		n = n*10 + int64(s[i]-'0')
		i++
	}
	return n, s[i:], i > 0
}

// cutLetters takes letters from the front.
func cutLetters(s string) (letters, rest string) {
	i := strings.IndexFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}
