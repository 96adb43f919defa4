package names

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/upstrand/upstrand/confgen/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// zone is a name server.
type zone struct {
	mu    sync.Mutex
	hosts map[string][]string
	asked int
}

func (z *zone) set(host string, addrs ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.hosts[host] = addrs
}

func (z *zone) count() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.asked
}

func (z *zone) Host(_ context.Context, _ topology.Resolver, host string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	if z.hosts[host] == nil {
		return nil, errors.New("no such host")
	}
	var out []netip.Addr
	for _, a := range z.hosts[host] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

func (z *zone) Service(context.Context, topology.Resolver, string, string) ([]topology.Answer, error) {
	return []topology.Answer{{Addr: netip.MustParseAddrPort("10.0.0.9:90"), Weight: 3}}, nil
}

func TestLookupAsksOnceUntilItForgets(t *testing.T) {
	z := &zone{hosts: map[string][]string{"a": {"10.0.0.1"}}}
	b := NewBook(z, zerolog.Nop())
	for range 3 {
		if got, err := b.Lookup("a"); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
	}
	if _, err := b.Lookup("b"); err == nil || !strings.Contains(err.Error(), "b: no such host") {
		t.Errorf("an error without the name: %v", err)
	}
	_, _ = b.Lookup("b")
	if z.count() != 2 {
		t.Errorf("asked %d times, want once for each name", z.count())
	}
	z.set("a", "10.0.0.2")
	b.Forget()
	if got, _ := b.Lookup("a"); got[0].String() != "10.0.0.2" {
		t.Errorf("after Forget: %v", got)
	}
}

// A name of a query is asked for again and again, a change is told, and a failure keeps the last good answer.
func TestQueriesFollowTheNameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{hosts: map[string][]string{"a": {"10.0.0.2", "10.0.0.1"}}}
		b := NewBook(z, zerolog.Nop())
		ctx, cancel := context.WithCancel(t.Context())
		var changes atomic.Int64
		go b.Run(ctx, func() { changes.Add(1) })
		q := topology.Query{Host: "a", Resolver: topology.Resolver{Servers: []string{"127.0.0.1"}, Valid: 2 * time.Second}}
		look := func() string {
			synctest.Wait()
			answers, err := b.Query(q)
			if err != nil {
				return err.Error()
			}
			var text []string
			for _, a := range answers {
				text = append(text, a.Addr.Addr().String())
			}
			return strings.Join(text, " ")
		}
		want := func(step, answer string, n int64) {
			t.Helper()
			if got := look(); got != answer || changes.Load() != n {
				t.Errorf("%s: %q after %d changes, want %q after %d", step, got, changes.Load(), answer, n)
			}
		}
		want("before the first answer", "", 0)
		want("the first answer, in order", "10.0.0.1 10.0.0.2", 1)
		z.set("a", "10.0.0.1", "10.0.0.2")
		time.Sleep(2100 * time.Millisecond)
		want("another order", "10.0.0.1 10.0.0.2", 1)
		z.set("a", "10.0.0.3")
		time.Sleep(2100 * time.Millisecond)
		want("another address", "10.0.0.3", 2)
		z.set("a")
		z.mu.Lock()
		delete(z.hosts, "a")
		z.mu.Unlock()
		time.Sleep(2100 * time.Millisecond)
		want("the name server fails", "10.0.0.3", 2)
		z.set("a", "10.0.0.4")
		time.Sleep(5100 * time.Millisecond)
		want("it is back", "10.0.0.4", 3)
		b.Sweep() // the looks above were since the last one
		b.Sweep() // and nobody has looked since
		asked := z.count()
		time.Sleep(time.Minute)
		if z.count() != asked {
			t.Errorf("a name that nobody wants was asked for %d times", z.count()-asked)
		}
		cancel()
		synctest.Wait()
	})
}

func TestServices(t *testing.T) {
	b := NewBook(&zone{hosts: map[string][]string{}}, zerolog.Nop())
	got, err := b.one(t.Context(), topology.Query{Host: "h", Service: "http"})
	if err != nil || len(got) != 1 || got[0].Weight != 3 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAddressesThatCanBeUsed(t *testing.T) {
	v4, v6 := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")
	if got := usable([]netip.Addr{v6}); len(got) != 1 {
		t.Errorf("an only IPv6 address is left out: %v", got)
	}
	want := 1
	if speaksIPv6() {
		want = 2
	}
	if got := usable([]netip.Addr{v6, v4}); len(got) != want {
		t.Errorf("%v, want %d", got, want)
	}
}
