package site

import (
	"strings"
	"testing"
)

// FuzzLocations compares the search with the rules as they are written down: an exact name; else one that lacks only its
// final slash and redirects; else the longest prefix.
func FuzzLocations(f *testing.F) {
	f.Add("=/a /b/ /b /", "/b/c")
	f.Add("/a/ /ab/ =/a", "/a")
	f.Add("/é /\xff", "/\xff")
	f.Add("/x/+ /x/y/+ /", "/x/y")
	f.Fuzz(func(t *testing.T, names, uri string) {
		var (
			tr  tree
			all []*location
		)
		seen := map[string]bool{}
		for _, word := range strings.Fields(names) {
			loc := &location{name: word}
			if rest, ok := strings.CutSuffix(loc.name, "+"); ok {
				loc.name, loc.autoRedirect = rest, true
			}
			if rest, ok := strings.CutPrefix(loc.name, "="); ok {
				loc.name, loc.form = rest, formExact
			}
			if key := string(rune(loc.form)) + loc.name; loc.name == "" || seen[key] {
				continue
			} else {
				seen[key] = true
			}
			at := tr.node(loc.name)
			if loc.form == formExact {
				at.exact = loc
			} else {
				at.prefix = loc
			}
			if bare, ok := strings.CutSuffix(loc.name, "/"); ok && loc.autoRedirect {
				tr.node(bare).slash = at
			}
			all = append(all, loc)
		}
		got, how := tr.search(uri)
		want, by := naive(all, uri)
		if how != by || got != want && how != withSlash {
			t.Fatalf("%q in %q: %+v %v, want %+v %v", uri, names, got, how, want, by)
		}
	})
}

func naive(all []*location, uri string) (best *location, how found) {
	for _, l := range all {
		switch {
		case l.form == formExact && l.name == uri:
			return l, byExact
		case l.form == formPrefix && strings.HasPrefix(uri, l.name) && (best == nil || len(l.name) > len(best.name)):
			best, how = l, byPrefix
		}
	}
	if best != nil && best.name == uri {
		return best, byPrefix
	}
	for _, l := range all {
		if l.autoRedirect && l.name == uri+"/" {
			return l, withSlash
		}
	}
	return best, how
}

// FuzzParseTarget: what comes out of a target is a path that no spelling leads out of.
func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"/", "/a/../b", "/%2e%2e/x", "//a//b", "/a/./..", "/%00", "/a?b#c", "/a#b?c", "/%", "*", "/a/..%2f..", "/...", "/%252e"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, target string, merge bool) {
		p, ok := parseTarget([]byte(target), merge)
		if !ok {
			return
		}
		if !strings.HasPrefix(p.uri, "/") || strings.IndexByte(p.uri, 0) >= 0 || merge && strings.Contains(p.uri, "//") {
			t.Fatalf("%q: %q", target, p.uri)
		}
		for segment := range strings.SplitSeq(p.uri, "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("%q: %q", target, p.uri)
			}
		}
		again, ok := parseTarget([]byte(escapePath(p.uri)), merge)
		if !ok || again.uri != p.uri {
			t.Fatalf("%q: %q, and read again %q", target, p.uri, again.uri)
		}
		if strings.ContainsAny(p.args, "#") {
			t.Fatalf("%q: arguments %q", target, p.args)
		}
	})
}
