package figures

import (
	"math/bits"
	"time"
)

// Latency counts durations in buckets whose width is at most 1/64 of their value, from 1 ns up; so a quantile is too high by 1.6 % at most, and never higher than the
// longest of them.
// The zero value is empty. Not safe for concurrent use.
type Latency struct {
	counts [64 * fine]int
	total  int
	most   time.Duration
}

// fine is the buckets of each power of two.
const fine = 64

// Add counts d; a negative one counts as 0.
func (l *Latency) Add(d time.Duration) {
	l.counts[bucket(uint64(max(d, 0)))]++
	l.total++
	l.most = max(l.most, d)
}

// Quantile returns a value that the part q (0 to 1) of what was counted does not pass; 0 when nothing was counted.
func (l *Latency) Quantile(q float64) time.Duration {
	if l.total == 0 {
		return 0
	}
	rank := min(l.total, int(q*float64(l.total))+1)
	seen := 0
	for i, n := range l.counts {
		if seen += n; seen >= rank {
			return min(l.most, time.Duration(upper(i)))
		}
	}
	return 0
}

// bucket is exact below fine; above, it is the power of two and the six bits that follow the highest one.
func bucket(v uint64) int {
	if v < fine {
		return int(v)
	}
	power := bits.Len64(v) - 7
	return (power+1)*fine + int(v>>power) - fine
}

// upper is the highest value of a bucket.
func upper(i int) uint64 {
	if i < fine {
		return uint64(i)
	}
	power := i/fine - 1
	return (uint64(i%fine)+fine+1)<<power - 1
}
