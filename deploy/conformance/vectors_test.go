package conformance

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// folder is where the vectors are: testdata, or another set with the same names of files.
func folder() string {
	if dir := os.Getenv("UPSTRAND_VECTORS"); dir != "" {
		return dir
	}
	return "testdata"
}

func ours(t *testing.T, dir string) map[string]Ours {
	t.Helper()
	all, err := LoadOurs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func vectors(t *testing.T) []*Vector {
	t.Helper()
	all, err := Load(folder())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestVectors replays the recorded cases through the program, end to end. CONFORMANCE_ONLY picks cases by a regular
// expression over THEME/NAME.
func TestVectors(t *testing.T) {
	few := os.Getenv("UPSTRAND_REAL") == "" && os.Getenv("CONFORMANCE_ONLY") == ""
	if few {
		t.Log("a few cases only: all take minutes, make test-real runs them (UPSTRAND_REAL=1)")
	}
	if why := namespaces(t); why != "" {
		t.Skip(why)
	}
	base, all := program(t), wanted(t, few)
	instead := ours(t, folder())
	// The longest first, so that the end of the test does not wait for one that began last.
	slices.SortStableFunc(all, func(a, b *Vector) int { return cmp.Compare(b.Seconds(), a.Seconds()) })
	var tally tallies
	t.Cleanup(func() { tally.print(t) })
	for _, v := range all {
		t.Run(v.ID(), func(t *testing.T) {
			t.Parallel()
			j := base
			j.Vector = v
			if !base.Nginx {
				j.Ours = instead[v.ID()]
			}
			tally.judge(t, v, j)
		})
	}
}

// some is what a plain `go test` runs: quick cases, and one of each kind.
var some = regexp.MustCompile(`^(01/(w511|drain_without_sticky|reload_resets)|02/(mf0_never_disabled|pnu_http09_answer|post_close_not_retried)|03/backup_weights|04/held_equal|06/(chash_name|ip_hash_ipv6)|08/cookie_value|09/(ip_hash_after_servers|slow_start_absent)|11/(backup_after_all|blacklist_three|intercept_proxied)|12/readme_layout|13/dynamic|14/(default_on|stale_two))$`)

func wanted(t *testing.T, few bool) (list []*Vector) {
	t.Helper()
	only, err := regexp.Compile(os.Getenv("CONFORMANCE_ONLY"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors(t) {
		if only.MatchString(v.ID()) && (!few || some.MatchString(v.ID())) {
			list = append(list, v)
		}
	}
	return list
}

// tallies counts how cases went, by theme.
type tallies struct {
	mu     sync.Mutex
	counts map[string]map[string]int
	notes  []string
}

func (all *tallies) judge(t *testing.T, v *Vector, j Job) {
	if why := NotApplicable()[v.ID()]; why != "" && !j.Nginx {
		all.note(v, "skipped", why)
		t.Skip(why)
	}
	verdict := try(t, j)
	switch {
	case verdict.Skipped != "":
		all.note(v, "skipped", verdict.Skipped)
		t.Skip(verdict.Skipped)
	case len(verdict.Diffs) > 0 && j.Ours == nil && v.Defect != "":
		all.note(v, "deviates", verdict.Diffs[0])
	case len(verdict.Diffs) > 0:
		all.note(v, "failed", "")
		t.Error(strings.Join(verdict.Diffs, "\n"))
	case j.Ours != nil:
		all.note(v, "deviates", "as proxy/DEVIATIONS.md says")
	default:
		all.note(v, "passed", "")
	}
}

func (all *tallies) note(v *Vector, how, why string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.counts == nil {
		all.counts = map[string]map[string]int{}
	}
	if all.counts[v.Theme] == nil {
		all.counts[v.Theme] = map[string]int{}
	}
	all.counts[v.Theme][how]++
	if why != "" {
		all.notes = append(all.notes, fmt.Sprintf("%s %s: %s", how, v.ID(), why))
	}
}

func (all *tallies) print(t *testing.T) {
	themes := []string{}
	for theme := range all.counts {
		themes = append(themes, theme)
	}
	slices.Sort(themes)
	for _, theme := range themes {
		c := all.counts[theme]
		fmt.Printf("%-22s passed %3d, deviates %d, skipped %d, failed %d\n", theme, c["passed"], c["deviates"], c["skipped"], c["failed"])
	}
	slices.Sort(all.notes)
	for _, note := range all.notes {
		fmt.Println("  " + note)
	}
}

// Every case of which we do something else is explained, and is a case.
func TestDeviationsAreExplained(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../../proxy/DEVIATIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	all, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		known[v.ID()] = true
		if v.Defect != "" && !strings.Contains(string(page), "`"+v.ID()+"`") {
			t.Errorf("%s has a defect (%s) and no line in proxy/DEVIATIONS.md", v.ID(), v.Defect)
		}
	}
	names := map[string]bool{}
	for id := range ours(t, "testdata") {
		names[id] = true
	}
	for id := range NotApplicable() {
		names[id] = true
	}
	for id := range names {
		if !known[id] {
			t.Errorf("%s is no recorded case", id)
		}
		if !strings.Contains(string(page), "`"+id+"`") {
			t.Errorf("%s has no line in proxy/DEVIATIONS.md", id)
		}
	}
}
