package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/upstrand/upstrand/deploy/conformance"
)

// vectorDir holds the recorded cases; UPSTRAND_VECTORS names another folder with files of the same names.
func vectorDir() string {
	if dir := os.Getenv("UPSTRAND_VECTORS"); dir != "" {
		return dir
	}
	return filepath.FromSlash("../../deploy/conformance/testdata")
}

// TestVectors replays what a real nginx was recorded to do through the whole of what serves traffic: the file is read,
// expanded, compiled and served, over virtual backends and a virtual clock.
func TestVectors(t *testing.T) {
	all, err := conformance.Load(vectorDir())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := conformance.LoadOurs(vectorDir())
	if err != nil {
		t.Fatal(err)
	}
	tally := map[string]*tallied{}
	for _, v := range all {
		c := tally[v.Theme]
		if c == nil {
			c = &tallied{}
			tally[v.Theme] = c
		}
		t.Run(v.ID(), func(t *testing.T) { c.judge(t, v, ours[v.ID()]) })
	}
	for _, theme := range sortedKeys(tally) {
		c := tally[theme]
		t.Logf("%-20s passed %3d, as ours.json says %d, deviates %d, skipped %d, failed %d", theme, c.passed, c.ours, c.deviates, c.skipped, c.failed)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

type tallied struct{ passed, ours, deviates, skipped, failed int }

func (c *tallied) judge(t *testing.T, v *conformance.Vector, ours conformance.Ours) {
	if why := conformance.NotApplicable()[v.ID()]; why != "" {
		c.skipped++
		t.Skip(why)
	}
	diffs := replayed(v, ours, 1)
	// A recorded order that is one of many must be one of ours.
	for seed := uint64(2); ours == nil && oneOfMany(v) && len(diffs) > 0 && seed <= seeds; seed++ {
		diffs = replayed(v, ours, seed)
	}
	switch {
	case len(diffs) == 0 && ours != nil:
		c.ours++
	case len(diffs) == 0:
		c.passed++
	case v.Defect != "" && ours == nil:
		c.deviates++
		t.Logf("recorded as a defect (%s), and we differ: %s", v.Defect, diffs[0])
	default:
		c.failed++
		for _, d := range diffs {
			t.Error(d)
		}
	}
}

// seeds bounds how many orders of chance are looked at for the recorded one. The rarest comes once in a dozen.
const seeds = 200

func oneOfMany(v *conformance.Vector) bool {
	random, counted := v.Random()
	return random && !counted && v.ConfigOK == nil
}

func replayed(v *conformance.Vector, ours conformance.Ours, seed uint64) []string {
	if v.ConfigOK != nil {
		return checked(v, ours)
	}
	r, err := newReplay(v, ours, seed)
	if err != nil {
		return []string{err.Error()}
	}
	defer r.close()
	for i := range v.Steps {
		if err := r.step(i); err != nil {
			return append(r.diffs, fmt.Sprintf("step %d: %v", i+1, err))
		}
	}
	return r.diffs
}
