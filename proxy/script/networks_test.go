package script

import (
	"net/netip"
	"testing"
)

func TestNetworks(t *testing.T) {
	var n Networks[string]
	if v, ok := n.Find(netip.MustParseAddr("10.0.0.1")); ok {
		t.Error(v, "of nothing")
	}
	for _, net := range []string{"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "192.0.2.77/24", "2001:db8::/32", "2001:db8:1::/48"} {
		n.Set(netip.MustParsePrefix(net), net)
	}
	n.Set(netip.MustParsePrefix("10.2.0.0/16"), "gone")
	n.Delete(netip.MustParsePrefix("10.2.0.0/16"))
	n.Delete(netip.MustParsePrefix("10.3.0.0/16")) // is not there
	for addr, want := range map[string]string{
		"10.1.2.3": "10.1.2.3/32", "10.1.2.4": "10.1.0.0/16", "10.2.0.1": "10.0.0.0/8", "11.0.0.1": "0.0.0.0/0", "192.0.2.1": "192.0.2.77/24",
		"::ffff:10.1.9.9": "10.1.0.0/16", "2001:db8:1::1": "2001:db8:1::/48", "2001:db8:2::1%eth0": "2001:db8::/32", "2001:db9::": "",
	} {
		if got, _ := n.Find(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
	if v, ok := n.Find(netip.Addr{}); ok {
		t.Error(v, "of no address")
	}
}

func TestRanges(t *testing.T) {
	addr := netip.MustParseAddr
	var s Ranges[string]
	add := func(from, to, v string) {
		t.Helper()
		if err := s.Add(addr(from), addr(to), v); err != nil {
			t.Error(err)
		}
	}
	add("10.0.0.10", "10.0.0.90", "outer")
	add("10.0.0.20", "10.0.0.30", "replaced")
	add("10.0.0.20", "10.0.0.30", "inner")
	add("10.0.0.10", "10.0.0.10", "first")
	add("10.0.0.90", "10.0.0.90", "last")
	add("10.0.0.0", "10.0.0.3", "below")
	add("10.1.255.250", "10.3.0.5", "wide")
	add("10.4.0.1", "10.4.0.9", "gone")
	if err := s.Delete(addr("10.4.0.1"), addr("10.4.0.9")); err != nil {
		t.Error(err)
	}
	for at, want := range map[string]string{
		"10.0.0.0": "below", "10.0.0.3": "below", "10.0.0.4": "", "10.0.0.9": "", "10.0.0.10": "first", "10.0.0.11": "outer", "10.0.0.19": "outer",
		"10.0.0.20": "inner", "10.0.0.30": "inner", "10.0.0.31": "outer", "10.0.0.89": "outer", "10.0.0.90": "last", "10.0.0.91": "",
		"10.1.255.249": "", "10.1.255.250": "wide", "10.2.0.0": "wide", "10.2.255.255": "wide", "10.3.0.5": "wide", "10.3.0.6": "", "10.4.0.5": "",
		"::ffff:10.0.0.20": "inner", "::1": "",
	} {
		if got, _ := s.Find(addr(at)); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
	for name, ends := range map[string][2]string{
		"across an end": {"10.0.0.0", "10.0.0.5"}, "around one": {"10.0.0.15", "10.0.0.40"}, "backwards": {"10.9.0.2", "10.9.0.1"}, "IPv6": {"::1", "::2"},
	} {
		if err := s.Add(addr(ends[0]), addr(ends[1]), "x"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestSplit: shares come out about as large as they are said to be. That they are those of nginx is shown where the site is compared.
func TestSplit(t *testing.T) {
	var s Split
	for _, p := range []struct {
		hundredths int
		value      string
		wrong      bool
	}{{50, "a", false}, {9950, "b", false}, {1, "c", true}, {0, "rest", false}, {1, "d", true}, {-1, "e", true}, {1 << 62, "f", true}} {
		if err := s.Add(p.hundredths, p.value); (err != nil) != p.wrong {
			t.Errorf("%+v: %v", p, err)
		}
	}
	counts := map[string]int{}
	for i := range 100000 {
		counts[s.Find(string([]byte{byte(i), byte(i >> 8), byte(i >> 16), 'x', 'y'}))]++
	}
	if a := counts["a"]; a < 400 || a > 600 || counts["b"] != 100000-a {
		t.Errorf("%v, want a half percent of a, and b", counts)
	}
	if v := new(Split).Find("x"); v != "" {
		t.Error(v, "of no shares")
	}
}
