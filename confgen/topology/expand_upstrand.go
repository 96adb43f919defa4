package topology

import (
	"slices"
	"strings"
)

// strand expands an upstrand, and gives the last result when it comes out the same.
func (x *Expander) strand(u Upstrand, groups map[string]*expandedGroup) *expandedStrand {
	s := &expandedStrand{}
	s.strand, s.problems = expandUpstrand(u, groups)
	if u.OwnZoneFirst {
		ownZoneFirst(s.strand, x.opts.Zone, groups)
	}
	if old := x.strands[u.Name]; old != nil && sameStrand(old.strand, s.strand) {
		s.strand = old.strand
	}
	return s
}

func sameStrand(a, b *Strand) bool {
	return a.Name == b.Name && a.Origin == b.Origin && a.PerRequest == b.PerRequest &&
		slices.Equal(a.Members, b.Members) && slices.Equal(a.NextStatuses, b.NextStatuses)
}

func expandUpstrand(u Upstrand, groups map[string]*expandedGroup) (*Strand, []Problem) {
	s := &Strand{Name: u.Name, Origin: u.Origin}
	var problems []Problem
	for _, d := range u.Directives {
		var reason string
		switch d[0] {
		case "upstream":
			reason = s.member(d, groups)
		case "order":
			reason = s.order(d)
		case "next_upstream_statuses":
			reason = s.statuses(d)
		default:
			reason = notBuilt
		}
		if reason != "" {
			problems = append(problems, Problem{Where: "upstrand " + u.Name, Directive: d, Reason: reason})
		}
	}
	return s, problems
}

func (s *Strand) member(d Directive, groups map[string]*expandedGroup) string {
	if len(d) < 2 {
		return "want upstream NAME [backup]"
	}
	m := Member{Upstream: d[1]}
	for _, arg := range d[2:] {
		if arg != "backup" {
			return "parameter " + arg + ": " + notBuilt
		}
		m.Backup = true
	}
	if strings.HasPrefix(m.Upstream, "~") {
		return "patterns: " + notBuilt
	}
	if groups[m.Upstream] == nil {
		return "no upstream " + m.Upstream
	}
	s.Members = append(s.Members, m)
	return ""
}

func (s *Strand) order(d Directive) string {
	if len(d) != 2 || d[1] != "per_request" {
		return notBuilt + " beside order per_request"
	}
	s.PerRequest = true
	return ""
}

func (s *Strand) statuses(d Directive) string {
	if len(d) < 2 {
		return "want next_upstream_statuses STATUS…"
	}
	for _, arg := range d[1:] {
		if !isStatus(arg) {
			return "unknown status " + arg
		}
	}
	s.NextStatuses = append(s.NextStatuses, d[1:]...)
	return ""
}

// isStatus knows error, timeout, non_idempotent, 4xx, 5xx and the numbers from 100 to 599.
func isStatus(s string) bool {
	switch s {
	case "error", "timeout", "non_idempotent", "4xx", "5xx":
		return true
	}
	return len(s) == 3 && s[0] >= '1' && s[0] <= '5' && s[1] >= '0' && s[1] <= '9' && s[2] >= '0' && s[2] <= '9'
}

// ownZoneFirst makes the members of other zones the backup of the proxy's own. A proxy without a zone, or one in whose
// zone no instance stands, has no reason to prefer any: it uses the flat upstream, which has the upstrand's name.
func ownZoneFirst(s *Strand, zone string, groups map[string]*expandedGroup) {
	own := s.Name + "@" + zone
	if zone != "" && slices.ContainsFunc(s.Members, func(m Member) bool { return m.Upstream == own }) {
		for i := range s.Members {
			s.Members[i].Backup = s.Members[i].Upstream != own
		}
		return
	}
	if groups[s.Name] != nil {
		s.Members = []Member{{Upstream: s.Name}}
	}
}
