package dialect

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/upstrand/upstrand/confgen/topology"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/*.want anew; look at the difference before you keep it")

// TestGolden checks each testdata/NAME.conf, or testdata/NAME/nginx.conf with its includes, and compares all that is
// known of it with testdata/NAME.want.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.conf")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("testdata/*/nginx.conf")
	if err != nil || len(files) == 0 || len(folders) == 0 {
		t.Fatal(files, folders, err)
	}
	for _, file := range append(files, folders...) {
		name := strings.TrimSuffix(strings.TrimSuffix(file, "/nginx.conf"), ".conf")
		t.Run(filepath.Base(name), func(t *testing.T) {
			got := describe(check(file, Options{}))
			if *rewrite {
				if err := os.WriteFile(name+".want", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(name + ".want")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func lookup(host string) ([]netip.Addr, error) {
	switch host {
	case "nowhere.test":
		return nil, fmt.Errorf("no such host %s", host)
	case "two.test":
		return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("192.0.2.9")}, nil
}

func query(q topology.Query) ([]topology.Answer, error) {
	if q.Service != "" {
		return []topology.Answer{{Addr: netip.MustParseAddrPort("192.0.2.3:8001"), Weight: 7}, {Addr: netip.MustParseAddrPort("192.0.2.4:8002"), Backup: true}}, nil
	}
	return nil, nil
}

// describe is a report as text.
func describe(r report) string {
	var b strings.Builder
	section := func(title string, faults []topology.Fault) {
		for i, f := range faults {
			if i == 0 {
				b.WriteString(title + "\n")
			}
			b.WriteString("  " + strings.TrimPrefix(f.Error(), "testdata/") + "\n")
		}
	}
	section("faults", r.faults)
	section("notices", r.notices)
	if len(r.faults) > 0 {
		return b.String()
	}
	for _, g := range r.expanded.Upstreams {
		fmt.Fprintf(&b, "upstream %s %s\n", g.Name, describeGroup(g))
		for _, p := range g.Peers {
			fmt.Fprintf(&b, "  %s\n", describePeer(p))
		}
	}
	for _, s := range r.expanded.Upstrands {
		fmt.Fprintf(&b, "upstrand %+v\n", *s)
	}
	outline(&b, r.doc.Site, "")
	return b.String()
}

func describeGroup(g *topology.Group) string {
	text := fmt.Sprintf("%+v", g.Method)
	if g.Sticky != nil {
		text += fmt.Sprintf(" sticky %+v", *g.Sticky)
	}
	return fmt.Sprintf("%s keepalive %+v count_single=%t", text, g.Keepalive, g.CountSingle)
}

func describePeer(p topology.Peer) string {
	return fmt.Sprintf("%s %q weight=%d max_fails=%d fail_timeout=%s max_conns=%d slow_start=%s route=%q backup=%t down=%t drain=%t #%d",
		p.Addr, p.Text, p.Weight, p.MaxFails, p.FailTimeout, p.MaxConns, p.SlowStart, p.Route, p.Backup, p.Down, p.Drain, p.Key.Ordinal)
}

func outline(b *strings.Builder, nodes []*topology.Node, indent string) {
	for _, n := range nodes {
		fmt.Fprintf(b, "%s%s:%d %s\n", indent, filepath.Base(n.File), n.Line, n)
		outline(b, n.Block, indent+"  ")
	}
}
