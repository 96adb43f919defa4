package simulate

import (
	"net/netip"
	"strings"
	"testing"
)

func TestScenarioFaultsAreToldAtOnce(t *testing.T) {
	text := strings.Join([]string{
		"seed 7",                             // 1
		"fly away",                           // 2
		"wait soon",                          // 3
		"server a sleep",                     // 4
		"server a status:99",                 // 5
		"request GET",                        // 6
		"request GET nowhere",                // 7
		"request GET / times=0",              // 8
		"request GET / from=somewhere",       // 9
		"expect a",                           // 10: nothing before it that is right
		"request GET / times=3",              // 11
		"expect a a",                         // 12
		"expect a*4",                         // 13
		"hold",                               // 14
		"hold k GET / times=2",               // 15
		"release",                            // 16
		`request GET / header="broken`,       // 17
		"request GET / header=X",             // 18
		"seed 8",                             // 19
		"start yesterday",                    // 20
		"change app a",                       // 21
		"reload a b",                         // 22
		"server a slow:10",                   // 23
		"request G/T /",                      // 24
		"request GET / times=100000001",      // 25
		"request GET / /x times=100000000",   // 26
		"join app",                           // 27
		"leave app a now",                    // 28
		"state a b",                          // 29
		"totals now",                         // 30
		"align now",                          // 31
		"wait -1s",                           // 32
		"request GET / color=red",            // 33
		"server a delay:-5",                  // 34
		"request GET / host=",                // 35
		"request GET \"/ /\"",                // 36
		"request GET / body=100*x from=10/8", // 37
	}, "\n")
	_, err := ParseScenario("x.scn", []byte(text))
	if err == nil {
		t.Fatal("no fault was found")
	}
	got := strings.Split(err.Error(), "\n")
	want := map[int]string{2: "no such command", 3: "want a time", 4: "unknown; allowed", 5: "from 200 to 599", 6: "want request METHOD",
		7: "a target that begins with /", 8: "from 1", 9: "an address", 10: "right after a request", 12: "2 expectations for 3",
		13: "more expectations", 14: "want hold NAME", 15: "holds one", 16: "want release", 17: "not closed", 18: "NAME:VALUE",
		19: "stands once", 20: "stands once", 21: "want change", 22: "want reload", 23: "slow:HEADER_MS", 24: "a method", 25: "from 1",
		26: "at most", 27: "want join", 28: "want leave", 29: "want state", 30: "want totals", 31: "want align", 32: "want a time",
		33: "want a target", 34: "from 0", 35: "want a name", 36: "no blanks", 37: "an address"}
	if len(got) != len(want) {
		t.Errorf("%d faults, want %d:\n%s", len(got), len(want), err)
	}
	for _, line := range got {
		var number int
		rest, ok := strings.CutPrefix(line, "x.scn:")
		for _, c := range rest {
			if c < '0' || c > '9' {
				break
			}
			number = number*10 + int(c-'0')
		}
		if !ok || want[number] == "" || !strings.Contains(line, want[number]) {
			t.Errorf("fault %q: want one of line %d with %q", line, number, want[number])
		}
	}
}

func TestTooManyFaultsAreCut(t *testing.T) {
	_, err := ParseScenario("x", []byte(strings.Repeat("fly\n", 10*maxFaults)))
	if n := len(strings.Split(err.Error(), "\n")); n != maxFaults+1 {
		t.Errorf("%d faults told, want %d", n, maxFaults+1)
	}
}

func TestNthAddress(t *testing.T) {
	for name, c := range map[string]struct {
		network string
		n       int
		want    string
	}{
		"one address":             {"10.0.0.7/32", 5, "10.0.0.7"},
		"first":                   {"10.0.0.0/8", 0, "10.0.0.0"},
		"carries":                 {"10.0.0.0/8", 256, "10.0.1.0"},
		"carries from a base":     {"10.0.0.255/32", 0, "10.0.0.255"},
		"begins again":            {"10.0.0.0/30", 6, "10.0.0.2"},
		"IPv6":                    {"2001:db8::/64", 65536, "2001:db8::1:0"},
		"IPv6 of the whole space": {"::/0", 1, "::1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nthAddr(netip.MustParsePrefix(c.network), c.n); got.String() != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A parsed scenario is told by what it does not crash on, and by faults that name a line of the file.
func FuzzParseScenario(f *testing.F) {
	f.Add("seed 1\nrequest GET / times=3 header=\"A: b\"\nexpect a*3\nserver a slow:1:2\nwait 1s\nhold k GET /\nrelease k\n")
	f.Add("change u a weight=1 -down\nreload x\nalign\nstart 2026-01-01T00:00:00Z")
	f.Add("request GET / body=5*x from=10.0.0.0/8 host=h{n}\nexpect status 200")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScenario("f", []byte(text))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") {
					t.Fatalf("fault without a place: %q", line)
				}
			}
			return
		}
		for _, l := range s.steps {
			if q, ok := l.does.(*requestStep); ok {
				for n := range min(q.template.count(), 3) {
					if r := q.template.request(n); len(r.Method) == 0 || !r.Remote.IsValid() {
						t.Fatalf("request %+v", r)
					}
				}
			}
		}
	})
}
