package figures

import (
	"math"
	"slices"
)

// Summary is the median of some values and how far they go.
type Summary struct {
	N                 int
	Median, Low, High float64
}

// Summarise leaves out what is not a number, which stands for a run that did not count. Without values all is NaN.
func Summarise(values []float64) Summary {
	var v []float64
	for _, x := range values {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			v = append(v, x)
		}
	}
	if len(v) == 0 {
		return Summary{Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
	}
	slices.Sort(v)
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (v[len(v)/2-1] + mid) / 2
	}
	return Summary{N: len(v), Median: mid, Low: v[0], High: v[len(v)-1]}
}

// Ratios divides each round of a by the same round of b. The machine's mood changes between rounds and hardly within one, so the median of the
// ratios says more than the ratio of the medians. A round that either has not counted gives NaN.
func Ratios(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] / b[i]
		if b[i] == 0 || a[i] == 0 {
			out[i] = math.NaN()
		}
	}
	return out
}
