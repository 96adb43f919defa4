package topology

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// strandExpansion carries out the directives of one upstrand.
type strandExpansion struct {
	run    *expansion
	rank   int
	strand *Strand
	order  bool            // was given
	listed map[Member]bool // members without their Blacklist; nil: none
	idle   bool            // the last pattern matched nothing
}

// strandDirectives carry out a line each. The result is why it can't be used; empty when it was.
var strandDirectives = map[string]func(x *strandExpansion, d Directive) string{
	"upstream":               (*strandExpansion).member,
	"order":                  (*strandExpansion).orderLine,
	"next_upstream_statuses": (*strandExpansion).statuses,
	"next_upstream_timeout":  (*strandExpansion).timeout,
	"intercept_statuses":     (*strandExpansion).intercept,
}

// strand expands an upstrand, and gives the last result when it comes out the same. again: there is one of its name above.
func (e *expansion) strand(at int, u Upstrand, old *expandedStrand, again bool) *expandedStrand {
	x := &strandExpansion{run: e, rank: u.Rank, strand: &Strand{Name: u.Name, Origin: u.Origin}}
	s := &expandedStrand{}
	problem := func(line int, d Directive, reason string, warning bool) {
		s.problems = append(s.problems, Problem{Where: "upstrand " + u.Name, Directive: d, Reason: reason, Upstream: -1, Upstrand: at, Line: line, Warning: warning})
	}
	var idle []int
	for i, d := range u.Directives {
		carryOut := strandDirectives[d[0]]
		reason := "bad upstrand directive; allowed: intercept_statuses next_upstream_statuses next_upstream_timeout order upstream"
		if x.idle = false; carryOut != nil {
			reason = carryOut(x, d)
		}
		if x.idle {
			idle = append(idle, i)
		}
		if reason != "" {
			problem(i, d, reason, false)
		}
	}
	if e.opts.Strict && len(x.strand.Members) == 0 && s.problems == nil {
		problem(-1, nil, "no upstream registered in upstrand \""+u.Name+"\"", false)
	}
	for _, i := range idle {
		if e.opts.Strict && len(x.strand.Members) > 0 {
			problem(i, u.Directives[i], "matches none of the upstreams above it", true)
		}
	}
	if e.opts.Strict && again {
		problem(-1, nil, "declared twice; the last one counts", true)
	}
	if u.OwnZoneFirst {
		e.ownZoneFirst(x.strand)
	}
	s.strand = x.strand
	if old != nil && sameStrand(old.strand, s.strand) {
		s.strand = old.strand
	}
	return s
}

func sameStrand(a, b *Strand) bool {
	return a.Name == b.Name && a.Origin == b.Origin && a.PerRequest == b.PerRequest && a.StartRandom == b.StartRandom &&
		a.NonIdempotent == b.NonIdempotent && a.NextTimeout == b.NextTimeout &&
		slices.Equal(a.Members, b.Members) && slices.Equal(a.NextStatuses, b.NextStatuses) &&
		slices.EqualFunc(a.Intercepts, b.Intercepts, func(a, b Intercept) bool { return a.URI == b.URI && slices.Equal(a.Statuses, b.Statuses) })
}

// maxPattern is the longest pattern; nginx has no longer words.
const maxPattern = 4096

const wantMember = "want upstream NAME|~REGEX [backup] [blacklist_interval=SECONDS]"

// member is upstream NAME or ~REGEX. A regex adds what is not in the list yet, in the order in which it was declared.
func (x *strandExpansion) member(d Directive) string {
	if len(d) < 2 || len(d) > 4 || d[1] == "" {
		return wantMember
	}
	m := Member{Upstream: d[1]}
	blacklisted := false
	for _, arg := range d[2:] {
		value, isInterval := strings.CutPrefix(arg, "blacklist_interval=")
		switch {
		case arg == "backup" && !m.Backup:
			m.Backup = true
		case isInterval && value != "" && !blacklisted:
			var err error
			if m.Blacklist, err = ParseSeconds(value); err != nil {
				return "bad blacklist interval: " + err.Error()
			}
			blacklisted = true
		default:
			return invalidParameter(arg, wantMember)
		}
	}
	if pattern, ok := strings.CutPrefix(m.Upstream, "~"); ok && pattern != "" {
		return x.matching(pattern, m)
	}
	i, ok := x.run.names[strings.ToLower(m.Upstream)]
	if !ok || !x.above(i) {
		return "upstream \"" + clip(m.Upstream) + "\" is not found"
	}
	m.Upstream = x.run.made[i].group.Name
	x.add(m)
	return ""
}

// above tells whether the i-th group may be named here: with a strict Config, when it was declared above.
func (x *strandExpansion) above(i int) bool {
	return !x.run.opts.Strict || x.run.made[i].rank < x.rank
}

func (x *strandExpansion) matching(pattern string, like Member) string {
	if len(pattern) > maxPattern {
		return fmt.Sprintf("the pattern is longer than %d bytes", maxPattern)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "bad pattern: " + err.Error() + "; want Go's syntax, which has no lookaround and no backreferences"
	}
	x.idle = true
	for i, p := range x.run.made {
		if x.above(i) && re.MatchString(p.group.Name) {
			x.idle = false
			m := like
			m.Upstream = p.group.Name
			x.add(m)
		}
	}
	return ""
}

// add leaves out what is in the list (of main or backup members) already.
func (x *strandExpansion) add(m Member) {
	if x.listed == nil {
		x.listed = map[Member]bool{}
	}
	if key := (Member{Upstream: m.Upstream, Backup: m.Backup}); !x.listed[key] {
		x.listed[key] = true
		x.strand.Members = append(x.strand.Members, m)
	}
}

func (x *strandExpansion) orderLine(d Directive) string {
	const want = "want order start_random, order per_request, or both"
	if x.order {
		return "duplicate upstrand directive"
	}
	s := x.strand
	for _, arg := range d[1:] {
		switch {
		case arg == "per_request" && !s.PerRequest:
			s.PerRequest = true
		case arg == "start_random" && !s.StartRandom:
			s.StartRandom = true
		default:
			return invalidParameter(arg, want)
		}
	}
	x.order = len(d) > 1
	if !x.order {
		return want
	}
	return ""
}

func (x *strandExpansion) statuses(d Directive) string {
	if len(d) < 2 {
		return "want next_upstream_statuses STATUS…"
	}
	for _, arg := range d[1:] {
		switch {
		case arg == "non_idempotent":
			x.strand.NonIdempotent = true
		case arg == "error", arg == "timeout", isStatus(arg):
			x.strand.NextStatuses = append(x.strand.NextStatuses, arg)
		default:
			return "invalid status \"" + clip(arg) + "\"; want error timeout non_idempotent 4xx 5xx, or a number from 100 to 599"
		}
	}
	return ""
}

// isStatus knows 4xx, 5xx and the numbers from 100 to 599.
func isStatus(s string) bool {
	if s == "4xx" || s == "5xx" {
		return true
	}
	return len(s) == 3 && s[0] >= '1' && s[0] <= '5' && s[1] >= '0' && s[1] <= '9' && s[2] >= '0' && s[2] <= '9'
}

func (x *strandExpansion) timeout(d Directive) string {
	if len(d) != 2 {
		return "want next_upstream_timeout SECONDS"
	}
	if x.strand.NextTimeout > 0 {
		return "duplicate upstrand directive"
	}
	t, err := ParseSeconds(d[1])
	if err != nil {
		return "bad timeout value: " + err.Error()
	}
	x.strand.NextTimeout = t
	return ""
}

func (x *strandExpansion) intercept(d Directive) string {
	if len(d) < 3 {
		return "want intercept_statuses STATUS… URI"
	}
	uri := d[len(d)-1]
	statuses := d[1 : len(d)-1]
	for _, arg := range statuses {
		if !isStatus(arg) {
			return "invalid status \"" + clip(arg) + "\"; want 4xx, 5xx, or a number from 100 to 599"
		}
	}
	if !strings.HasPrefix(uri, "/") && !strings.HasPrefix(uri, "@") {
		return "invalid URI \"" + clip(uri) + "\"; want one that begins with /, or @NAME of a location"
	}
	x.strand.Intercepts = append(x.strand.Intercepts, Intercept{Statuses: statuses, URI: uri})
	return ""
}

// ownZoneFirst makes the members of other zones the backup of the proxy's own. A proxy without a zone, or one in whose
// zone no instance stands, has no reason to prefer any: it uses the flat upstream, which has the upstrand's name.
func (e *expansion) ownZoneFirst(s *Strand) {
	own := s.Name + "@" + e.opts.Zone
	if e.opts.Zone != "" && slices.ContainsFunc(s.Members, func(m Member) bool { return m.Upstream == own }) {
		for i := range s.Members {
			s.Members[i].Backup = s.Members[i].Upstream != own
		}
		return
	}
	if g := e.named(s.Name); g != nil && g.Name == s.Name {
		s.Members = []Member{{Upstream: s.Name}}
	}
}
