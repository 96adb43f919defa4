package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// addUpstream is add_upstream NAME [weight=N] [backup]: the servers that the source has at this moment are copied to
// this place, with all parameters. Method, zone and state are not; nor does a method refuse these backup servers.
func (x *upstreamExpansion) addUpstream(d Directive) string {
	if len(d) < 2 || len(d) > 4 {
		return "want add_upstream NAME [weight=N] [backup]"
	}
	weight, backup, reason := addParameters(d[2:])
	if reason != "" {
		return reason
	}
	from, reason := x.run.source(x.at, d[1])
	x.result.added = append(x.result.added, addition{name: d[1], from: from})
	if reason != "" {
		return reason
	}
	entries := from.allEntries()
	if reason := x.copies(max(len(entries), len(from.group.Peers))); reason != "" {
		return reason
	}
	x.result.asked = append(x.result.asked, from.asked...)
	x.group.ByName = x.group.ByName || from.group.ByName
	x.group.Queries = append(x.group.Queries, from.group.Queries...)
	for _, en := range entries {
		en.backup = en.backup || backup
		peers := make([]Peer, 0, en.to-en.from)
		for _, p := range from.group.Peers[en.from:en.to] {
			if p.Weight > maxWeight/max(weight, 1) {
				return fmt.Sprintf("weight %d of %s times %d is too much; want at most %d", p.Weight, p.Text, weight, maxWeight)
			}
			p.Weight *= max(weight, 1)
			p.Backup = p.Backup || backup
			peers = append(peers, p)
		}
		x.addEntry(en, peers...)
	}
	return ""
}

// maxCopies is how many servers all add_upstream and combine_server_singlets of a Config may make: a few lines that each
// double what is above them, or the singlets of ten thousand instances, would fill any memory.
const maxCopies = 1 << 18

// copies asks whether there is room for n more of them. The result is why not.
func (x *upstreamExpansion) copies(n int) string {
	if n > x.run.most-x.run.copied {
		x.result.cut = true
		return fmt.Sprintf("makes %d copies of servers, %d are there already; want at most %d in all", n, x.run.copied, x.run.most)
	}
	x.run.copied += n
	x.result.copied += n
	return ""
}

// addParameters reads [weight=N] [backup]. A word that only begins with backup is one too, as in the module.
func addParameters(args []string) (weight int, backup bool, reason string) {
	for _, arg := range args {
		value, isWeight := strings.CutPrefix(arg, "weight=")
		switch {
		case strings.HasPrefix(arg, "backup"):
			if backup {
				return 0, false, "parameter \"backup\" has been already declared"
			}
			backup = true
		case isWeight:
			if weight > 0 {
				return 0, false, "parameter \"weight\" has been already declared"
			}
			n, err := parseWeight(value)
			if err != nil {
				return 0, false, "parameter \"weight\" must be a positive integer value: " + wanted(err)
			}
			weight = n
		default:
			return 0, false, invalidParameter(arg, "want weight=N or backup")
		}
	}
	return weight, backup, ""
}

// singletNames is how combine_server_singlets names what it makes.
type singletNames struct {
	suffix   string
	width    int // of the number, padded with zeros
	byName   bool
	noBackup bool
}

// singlets is combine_server_singlets [SUFFIX [WIDTH] | [SUFFIX] byname] [nobackup]: for each server declared so far a
// new round robin upstream in which it is the main server and the others are its backup, or with nobackup down.
func (x *upstreamExpansion) singlets(d Directive) string {
	how, reason := readSinglets(d[1:])
	if reason != "" {
		return reason
	}
	entries := x.entries
	if entries == nil {
		entries = ownEntries(x.group.Peers)
	}
	if reason := x.copies(len(entries) * len(x.group.Peers)); reason != "" {
		return reason
	}
	for i, en := range entries {
		name := x.group.Name + how.suffix
		if how.byName {
			name += strings.ReplaceAll(en.text, ":", "_")
		} else {
			name += fmt.Sprintf("%0*d", how.width, i+1)
		}
		x.result.singlets = append(x.result.singlets, x.singlet(name, entries, i, how.noBackup))
		if x.run.opts.Strict && how.noBackup && !hasMain(entries) {
			return "no servers in upstream \"" + name + "\": all are backup"
		}
	}
	return ""
}

func hasMain(entries []serverEntry) bool {
	for _, en := range entries {
		if !en.backup {
			return true
		}
	}
	return false
}

// singlet is the i-th of the entries as a group of its own. It keeps no connections, as in nginx.
func (x *upstreamExpansion) singlet(name string, entries []serverEntry, i int, noBackup bool) *Group {
	own := &upstreamExpansion{group: &Group{Name: name, Origin: x.group.Origin, Keepalive: Keepalive{Idle: 0},
		Queries: x.group.Queries, ByName: x.group.ByName}, ordinals: map[PeerKey]int{}}
	for n, en := range entries {
		for _, p := range x.group.Peers[en.from:en.to] {
			switch {
			case noBackup && n != i:
				p.Down, p.Drain = true, false
			case !noBackup:
				p.Backup = n != i
			}
			own.add(p)
		}
	}
	return own.group
}

func readSinglets(args []string) (singletNames, string) {
	var how singletNames
	if n := len(args); n > 0 && args[n-1] == "nobackup" {
		how.noBackup = true
		args = args[:n-1]
	}
	if len(args) > 2 {
		return how, "want combine_server_singlets [SUFFIX [WIDTH] | [SUFFIX] byname] [nobackup]"
	}
	if len(args) == 0 {
		return how, ""
	}
	if args[0] == "byname" {
		how.byName = true
		if len(args) == 2 {
			return how, "setting field width is not permitted when using \"byname\" value"
		}
		return how, ""
	}
	how.suffix = args[0]
	if len(args) == 1 {
		return how, ""
	}
	if args[1] == "byname" {
		how.byName = true
		return how, ""
	}
	width, err := strconv.Atoi(args[1])
	if err != nil || width < 0 || width > 9 {
		return how, "field width \"" + clip(args[1]) + "\" must be an integer value; want 0 to 9"
	}
	how.width = width
	return how, ""
}
