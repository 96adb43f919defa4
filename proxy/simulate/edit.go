package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// edit is what an editStep does to a server line.
type edit uint8

const (
	changes edit = iota
	joins
	leaves
)

// editStep changes a server line of an upstream, as an edited file that is read again would.
type editStep struct {
	upstream, server string
	params           []string
	what             edit
}

func (s *editStep) do(r *run) error {
	next := *r.file.Config
	next.Upstreams = slices.Clone(next.Upstreams)
	i := slices.IndexFunc(next.Upstreams, func(u topology.Upstream) bool { return u.Name == s.upstream })
	if i < 0 {
		return r.noUpstream(s.upstream)
	}
	u := &next.Upstreams[i]
	u.Directives = slices.Clone(u.Directives)
	at := slices.IndexFunc(u.Directives, func(d topology.Directive) bool {
		return len(d) > 1 && d[0] == "server" && d[1] == s.server
	})
	if at < 0 && s.what != joins {
		return fmt.Errorf("upstream %s has no line server %s", s.upstream, s.server)
	}
	switch s.what {
	case joins:
		u.Directives = append(u.Directives, append(topology.Directive{"server", s.server}, s.params...))
	case leaves:
		u.Directives = slices.Delete(u.Directives, at, at+1)
	case changes:
		u.Directives[at] = changed(u.Directives[at], s.params)
	}
	f := *r.file
	f.Config = &next
	return r.apply(&f)
}

// changed gives a server line other parameters: key=value takes the place of the one with that key, a word is added,
// and -word takes one away.
func changed(line topology.Directive, params []string) topology.Directive {
	out := slices.Clone(line)
	for _, p := range params {
		key := paramKey(strings.TrimPrefix(p, "-"))
		out = slices.DeleteFunc(out, func(w string) bool { return paramKey(w) == key && w != "server" && w != line[1] })
		if !strings.HasPrefix(p, "-") {
			out = append(out, p)
		}
	}
	return out
}

func paramKey(p string) string {
	key, _, _ := strings.Cut(p, "=")
	return key
}
