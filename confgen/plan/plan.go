// Package plan says what a change of the declared topology would do to the one that is published: what is wrong with it,
// what becomes of upstreams, upstrands and routes, and how many peers each has before and after. It is pure, and changes
// nothing: whoever asks applies it or does not.
package plan

import (
	"slices"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// Plan is what would happen.
type Plan struct {
	Faults   []topology.Fault // why it can't be applied, by file and line; File is the name that a file is declared under
	Warnings []topology.Fault
	Changes  []Change // upstreams, upstrands, routes, each by name; none with Faults
	// Records is how many records of the topology it would write or remove; 0: nothing is to be published.
	Records int
}

// Make plans that the declared files become these, over the registry as it is. Snap must have its declared files.
//
// What is wrong with a file that the change leaves alone, and was wrong before, is only warned of: beats, or a newer
// release, may have made it so, and it must not stand in the way of what mends it.
func Make(snap registry.Snapshot, files []registry.DeclaredFile) *Plan {
	old := []registry.DeclaredFile{}
	if snap.Declared != nil {
		old = snap.Declared.Files
	}
	before, after := newState(snap, old), newState(snap, files)
	before.review(after)
	after.review(before)
	p := &Plan{Warnings: after.warnings}
	untouched := unchanged(old, files)
	for _, f := range after.faults {
		if untouched[f.File] && slices.Contains(before.faults, f) {
			p.Warnings = append(p.Warnings, f)
		} else {
			p.Faults = append(p.Faults, f)
		}
	}
	p.Faults = append(p.Faults, losses(before, after)...)
	p.Faults, p.Warnings = topology.SortFaults(p.Faults), topology.SortFaults(p.Warnings)
	if len(p.Faults) == 0 {
		p.Changes, p.Records = changes(before, after), difference(before.records, after.records)
	}
	return p
}

// unchanged are the files that read the same in both.
func unchanged(old, files []registry.DeclaredFile) map[string]bool {
	same := map[string]bool{}
	for _, f := range files {
		same[f.Name] = slices.ContainsFunc(old, func(o registry.DeclaredFile) bool { return o.Name == f.Name && o.Text == f.Text })
	}
	return same
}

// losses are derived routes that would lead nowhere.
func losses(before, after *state) []topology.Fault {
	var out []topology.Fault
	had := before.served()
	has := after.served()
	for _, r := range after.config.Routes {
		if key := topology.RouteKey(r.Host, r.Path); r.Origin == topology.Derived && had[key] && !has[key] {
			out = append(out, topology.Fault{Reason: "the derived route " + r.Path + " would lead nowhere"})
		}
	}
	return out
}

// difference counts the records that are not the same in both.
func difference(a, b map[string]string) (n int) {
	for key, value := range b {
		if was, had := a[key]; !had || was != value {
			n++
		}
	}
	for key := range a {
		if _, stays := b[key]; !stays {
			n++
		}
	}
	return n
}
