package proxy

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/upstrand/upstrand/proxy/site"
)

// Door is one socket that traffic comes in by. Doors are compared with ==: an equal one stays open over a change.
type Door struct {
	Addr  netip.AddrPort // an unspecified address is all of its family; port 0 takes a free one
	Reuse bool           // SO_REUSEPORT, so that another process may listen there too
	Both  bool           // of [::]: takes IPv4 too
	TLS   bool           // clients speak TLS, as the servers of the routing table in force say
	HTTP2 bool           // … and may speak HTTP/2: by prior knowledge; over TLS the handshake says it
	// ProxyProtocol: connections begin with a header that says who the client is.
	ProxyProtocol bool

	Conns           int // open at once; one more is closed at once. 0: no limit
	ConnsPerAddress int // of one client's address

	// Limits are for the clients that come in here. The zero value: those of the proxy.
	Limits site.ClientLimits
}

// sameSocket reports whether the doors differ in nothing that a socket knows of.
func (d Door) sameSocket(o Door) bool {
	return d.Addr == o.Addr && d.Reuse == o.Reuse && d.Both == o.Both
}

// Doors is the sockets that a proxy takes traffic on, as a configuration file lists them. A change opens what is new and
// closes what is gone; what stays is not touched. Connections that came in by a door that closes are served to their end.
type Doors struct {
	serve   func(net.Listener, Door) error
	inherit Inherited
	shared  atomic.Bool   // another process has all sockets too
	held    chan struct{} // closed when doors take connections

	changing sync.Mutex // serialises changes
	mu       sync.Mutex
	open     map[netip.AddrPort]*opening // by where they listen
	failed   chan error
	serving  sync.WaitGroup
}

// NewDoors has no door open yet. serve takes connections from a listener until that is closed.
func NewDoors(serve func(net.Listener, Door) error) *Doors {
	d := &Doors{serve: serve, open: map[netip.AddrPort]*opening{}, failed: make(chan error, 1), held: make(chan struct{})}
	close(d.held)
	return d
}

// Inherit has doors use sockets that were opened before this process, and with hold no door takes connections before
// Release: they wait in the kernel, where another process may take them too. It is called before the first Prepare.
func (d *Doors) Inherit(from Inherited, hold bool) {
	d.inherit = from
	if hold {
		d.held = make(chan struct{})
	}
}

// Share says that another process has the sockets of the open doors too, so that closing them resets nothing.
func (d *Doors) Share() { d.shared.Store(true) }

// Release lets doors that were held take connections. It is called once, and only after Inherit with hold.
func (d *Doors) Release() { close(d.held) }

// DoorChange is a prepared step from the doors of now to others. Exactly one of Commit and Abandon ends it.
type DoorChange struct {
	doors  *Doors
	next   map[netip.AddrPort]*opening
	fresh  []*opening
	closed []*opening // closed already, to make room for a door at the same port
}

// Prepare opens the doors that are not open yet and changes nothing else, unless one has to make room (see makeRoom). Where
// a wildcard address is listened on, an address of the same port needs no socket of its own, as in nginx.
func (d *Doors) Prepare(list []Door) (*DoorChange, error) {
	d.changing.Lock()
	wanted := distinct(list)
	c := &DoorChange{doors: d, next: map[netip.AddrPort]*opening{}}
	for _, key := range slices.SortedFunc(maps.Keys(wanted), netip.AddrPort.Compare) {
		if err := c.take(key, wanted[key], wanted); err != nil {
			c.Abandon()
			return nil, err
		}
	}
	return c, nil
}

// take keeps the door of that key, or opens it.
func (c *DoorChange) take(key netip.AddrPort, door Door, wanted map[netip.AddrPort]Door) error {
	if now := c.doors.open[key]; now != nil && now.door == door {
		c.next[key] = now
		return nil
	}
	if now := c.doors.open[key]; now != nil && now.door.sameSocket(door) {
		// It goes on under other limits, and nobody is refused meanwhile.
		ln, err := again(now.ln)
		if err != nil {
			return &DoorError{door.Addr, err}
		}
		c.add(key, door, ln, now.shared)
		return nil
	}
	ln, shared, err := c.doors.socket(door)
	if errors.Is(err, syscall.EADDRINUSE) && c.makeRoom(door, wanted) {
		ln, err = listen(door)
	}
	if err != nil {
		return &DoorError{door.Addr, err}
	}
	c.add(key, door, ln, shared)
	return nil
}

func (c *DoorChange) add(key netip.AddrPort, door Door, ln net.Listener, shared bool) {
	o := newOpening(door, ln, shared)
	c.next[key] = o
	c.fresh = append(c.fresh, o)
}

// makeRoom closes doors at the port of another one that are not wanted any more: a wildcard and a single address can't
// have a socket each, and neither can one address with SO_REUSEPORT and without. For a moment new connections to them are
// refused.
func (c *DoorChange) makeRoom(door Door, wanted map[netip.AddrPort]Door) bool {
	found := false
	for key, now := range c.doors.open {
		next, stays := wanted[key]
		if goes := !stays || !now.door.sameSocket(next); goes && !now.isClosing() && now.door.Addr.Port() == door.Addr.Port() {
			c.doors.close(now)
			c.closed = append(c.closed, now)
			found = true
		}
	}
	return found
}

// Commit serves what is new and closes what is gone.
func (c *DoorChange) Commit() {
	defer c.doors.changing.Unlock()
	d := c.doors
	d.mu.Lock()
	old := d.open
	d.open = c.next
	d.mu.Unlock()
	for _, o := range c.fresh {
		d.run(o)
	}
	for key, o := range old {
		if next := c.next[key]; next != o {
			o.shared = o.shared || next != nil && next.door.sameSocket(o.door)
			d.close(o)
		}
	}
}

// Abandon closes what Prepare opened. Doors that had to make room are opened again.
func (c *DoorChange) Abandon() {
	defer c.doors.changing.Unlock()
	for _, o := range c.fresh {
		_ = o.ln.Close()
	}
	for _, o := range c.closed {
		ln, err := listen(o.door)
		if err != nil {
			c.doors.fail(fmt.Errorf("listen on %s again: %w", o.door.Addr, err))
			continue
		}
		back := newOpening(o.door, ln, false)
		c.doors.mu.Lock()
		for key, now := range c.doors.open {
			if now == o {
				c.doors.open[key] = back
			}
		}
		c.doors.mu.Unlock()
		c.doors.run(back)
	}
}

func (d *Doors) run(o *opening) {
	d.serving.Go(func() {
		select {
		case <-d.held:
		case <-o.closing:
			return
		}
		if err := d.serve(lent{o.ln}, o.door); err != nil && !o.isClosing() {
			d.fail(err)
		}
	})
}

func (d *Doors) fail(err error) {
	select {
	case d.failed <- err:
	default:
	}
}

// close closes a door; its socket, if nobody else has it, once what waits there has been taken.
func (d *Doors) close(o *opening) {
	d.mu.Lock()
	if !o.isClosing() {
		close(o.closing)
	}
	d.mu.Unlock()
	if !o.shared && !d.shared.Load() {
		o.drain()
	}
	_ = o.ln.Close()
}

// Failed gives an error when a door stops taking connections by itself.
func (d *Doors) Failed() <-chan error { return d.failed }

// Addrs is where the open doors listen, sorted.
func (d *Doors) Addrs() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]string, 0, len(d.open))
	for _, o := range d.open {
		out = append(out, o.ln.Addr().String())
	}
	slices.Sort(out)
	return out
}

// Close closes all doors and waits until nobody takes connections from them any more.
func (d *Doors) Close() {
	d.changing.Lock()
	defer d.changing.Unlock()
	var closing sync.WaitGroup
	for _, o := range d.open {
		closing.Go(func() { d.close(o) })
	}
	closing.Wait()
	d.serving.Wait()
}

// distinct is one door for each socket that is needed. One that takes another address's connections too lets clients speak
// what they may speak there; what begins in plain text at a door with TLS is served as such.
func distinct(list []Door) map[netip.AddrPort]Door {
	there := map[netip.AddrPort]bool{}
	for _, door := range list {
		there[door.Addr] = true
	}
	out := map[netip.AddrPort]Door{}
	var covered []Door
	for _, door := range list {
		if wide := wildcard(door.Addr); door.Addr.Port() == 0 || door.Addr == wide || !there[wide] {
			out[door.Addr] = door
		} else {
			covered = append(covered, door)
		}
	}
	for _, door := range covered {
		wide := out[wildcard(door.Addr)]
		wide.TLS, wide.HTTP2 = wide.TLS || door.TLS, wide.HTTP2 || door.HTTP2
		out[wide.Addr] = wide
	}
	return out
}

// wildcard is all addresses of a's family, on its port.
func wildcard(a netip.AddrPort) netip.AddrPort {
	all := netip.IPv4Unspecified()
	if a.Addr().Is6() {
		all = netip.IPv6Unspecified()
	}
	return netip.AddrPortFrom(all, a.Port())
}
