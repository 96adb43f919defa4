package simulate

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// world is where requests go: virtual servers, virtual time, and chance that repeats. One thing happens at a time: who
// runs is either the driver or one request, and they hand over to each other; that is why little here is locked.
type world struct {
	clock
	random  *rand.PCG
	servers map[string]*server      // by ip:port
	kept    map[*balance.Peer]*kept // connections of the peer's upstream
	waiting []*visit                // requests held at their servers
	current *visit                  // the request that runs; nil: none
	log     io.Writer               // of access logs; nil: nowhere

	names sync.Mutex // a topology may be expanded by anybody
	known map[string]netip.Addr
}

func newWorld(seed uint64) *world {
	w := &world{random: rand.NewPCG(seed, seed^0x9e3779b97f4a7c15), servers: map[string]*server{},
		kept: map[*balance.Peer]*kept{}, known: map[string]netip.Addr{}}
	w.clock.forward(start.UnixNano())
	return w
}

// chance is the source of random numbers.
func (w *world) chance() uint64 { return w.random.Uint64() }

// server gives the one at that address; it is made when it is first asked for.
func (w *world) server(addr string) *server {
	s := w.servers[addr]
	if s == nil {
		s = &server{name: addr, does: behaviour{status: 200}}
		w.servers[addr] = s
	}
	return s
}

// set changes what a server does from now on. One that no longer listens keeps no connection.
func (w *world) set(addr string, b behaviour) {
	w.server(addr).set(b)
	if b.kind == refuses || b.kind == drops {
		w.dropIdle(addr)
	}
}

// firstName is before the first address that a name gets. The block is reserved, so nobody's address is hit.
var firstName = netip.AddrFrom4([4]byte{240, 0, 0, 0})

// lookup gives a name its address without asking anybody: the same name has the same one for the life of the world.
func (w *world) lookup(host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if host == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	w.names.Lock()
	defer w.names.Unlock()
	a, ok := w.known[host]
	if !ok {
		n := len(w.known) + 1
		if n >= 1<<24 {
			return nil, fmt.Errorf("too many names")
		}
		first := firstName.As4()
		a = netip.AddrFrom4([4]byte{first[0], byte(n >> 16), byte(n >> 8), byte(n)})
		w.known[host] = a
	}
	return []netip.Addr{a}, nil
}

// address is the ip:port of a server's text, such as a, a:81, 10.0.0.1 or [::1]:80.
func (w *world) address(text string) (string, error) {
	host, port := text, 80
	if h, p, err := net.SplitHostPort(text); err == nil {
		n, err := number(p, 1, 65535)
		if err != nil {
			return "", fmt.Errorf("port %w", err)
		}
		host, port = h, n
	}
	addrs, err := w.lookup(host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(addrs[0].String(), strconv.Itoa(port)), nil
}

// pass lets time go by. Requests that are held longer than they may be are woken in the order of their limits.
func (w *world) pass(d time.Duration) { w.until(w.Now() + int64(max(d, 0))) }

// until lets time go by up to a moment.
func (w *world) until(ns int64) {
	for {
		v := w.nextLimit(ns)
		if v == nil {
			w.forward(ns)
			return
		}
		w.forward(v.limit)
		w.wake(v, timedOut)
	}
}

// nextLimit is the held request whose limit comes first, and not after ns; nil when there is none.
func (w *world) nextLimit(ns int64) *visit {
	var first *visit
	for _, v := range w.waiting {
		if v.limit <= ns && (first == nil || v.limit < first.limit) {
			first = v
		}
	}
	return first
}
