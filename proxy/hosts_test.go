package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

func newHosts(t *testing.T, lookup func(host string) ([]netip.Addr, error)) *hosts {
	return &newWorld(t, func(c *Config) { c.Lookup = lookup }).p.hosts
}

var loopback = []netip.Addr{netip.MustParseAddr("127.0.0.1")}

// TestADroppedHostIsBegunAnew: who found a host just before others drove it out gets one all the same, and an answer that
// comes too late makes no peers that nobody would let go.
func TestADroppedHostIsBegunAnew(t *testing.T) {
	hs := newHosts(t, func(string) ([]netip.Addr, error) { return loopback, nil })
	resolver := &topology.Resolver{}
	first := hs.of("a:80", resolver)
	if first == nil {
		t.Fatal("no upstream")
	}
	h := hs.all["a:80"]
	hs.drop(h)
	if again := hs.of("a:80", resolver); again == nil || again.Group == first.Group || hs.all["a:80"] == h {
		t.Errorf("%v after %v", again, first)
	}
	hs.ask(h, resolver)
	if h.current != nil {
		t.Error("a dropped host has peers")
	}
}

// TestAHostWithoutAddress is asked for again by a request, not behind its back, when its time has come.
func TestAHostWithoutAddress(t *testing.T) {
	answer, asked := []netip.Addr(nil), 0
	hs := newHosts(t, func(host string) ([]netip.Addr, error) {
		if asked++; answer == nil {
			return nil, errors.New("no such host")
		}
		return answer, nil
	})
	resolver := &topology.Resolver{}
	for range 2 {
		if up := hs.of("a:80", resolver); up != nil || asked != 1 {
			t.Fatalf("%v, asked %d times", up, asked)
		}
	}
	answer, hs.all["a:80"].until = loopback, time.Now().Add(-time.Second)
	if up := hs.of("a:80", resolver); up == nil || asked != 2 {
		t.Errorf("%v, asked %d times", up, asked)
	}
}

// TestHostsAreBounded: names that clients make up drive each other out, and take their connections with them.
func TestHostsAreBounded(t *testing.T) {
	hs := newHosts(t, func(string) ([]netip.Addr, error) { return loopback, nil })
	for i := range mostHosts + 50 {
		if hs.of(fmt.Sprintf("h%d:80", i), &topology.Resolver{}) == nil {
			t.Fatal(i)
		}
	}
	if n := len(hs.all); n != mostHosts {
		t.Errorf("%d hosts", n)
	}
}
