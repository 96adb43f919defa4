package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/upstrand/upstrand/proxy/site"
)

// Door is one socket that traffic comes in by. Doors are compared with ==: an equal one stays open over a change.
type Door struct {
	Addr  netip.AddrPort // an unspecified address is all of its family; port 0 takes a free one
	Reuse bool           // SO_REUSEPORT, so that another process may listen there too
	Both  bool           // of [::]: takes IPv4 too
	// Limits are for the clients that come in here.
	Limits site.ClientLimits
}

// sameSocket reports whether the doors differ in nothing that a socket knows of.
func (d Door) sameSocket(o Door) bool {
	return d.Addr == o.Addr && d.Reuse == o.Reuse && d.Both == o.Both
}

// Doors is the sockets that a proxy takes traffic on, as a configuration file lists them. A change opens what is new and
// closes what is gone; what stays is not touched. Connections that came in by a door that closes are served to their end.
type Doors struct {
	serve func(net.Listener, Door) error

	changing sync.Mutex // serialises changes
	mu       sync.Mutex
	open     map[netip.AddrPort]*opening // by where they listen
	failed   chan error
	serving  sync.WaitGroup
}

// opening is an open door.
type opening struct {
	door    Door
	ln      net.Listener
	closing bool // guarded by Doors.mu
}

// NewDoors has no door open yet. serve takes connections from a listener until that is closed.
func NewDoors(serve func(net.Listener, Door) error) *Doors {
	return &Doors{serve: serve, open: map[netip.AddrPort]*opening{}, failed: make(chan error, 1)}
}

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
			return fmt.Errorf("listen on %s: %w", door.Addr, err)
		}
		c.add(key, door, ln)
		return nil
	}
	ln, err := listen(door)
	if errors.Is(err, syscall.EADDRINUSE) && c.makeRoom(door, wanted) {
		ln, err = listen(door)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", door.Addr, err)
	}
	c.add(key, door, ln)
	return nil
}

func (c *DoorChange) add(key netip.AddrPort, door Door, ln net.Listener) {
	o := &opening{door: door, ln: ln}
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
		if goes := !stays || !now.door.sameSocket(next); goes && !now.closing && now.door.Addr.Port() == door.Addr.Port() {
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
		if c.next[key] != o {
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
		back := &opening{door: o.door, ln: ln}
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

// lent is a door's listener in the hands of an engine, which closes what it serves when it ends. The door may have been
// faster, and that is no error: an engine that sees one does not wait for open tunnels.
type lent struct{ net.Listener }

func (l lent) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (d *Doors) run(o *opening) {
	d.serving.Go(func() {
		err := d.serve(lent{o.ln}, o.door)
		d.mu.Lock()
		closing := o.closing
		d.mu.Unlock()
		if !closing && err != nil {
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

func (d *Doors) close(o *opening) {
	d.mu.Lock()
	o.closing = true
	d.mu.Unlock()
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
	for _, o := range d.open {
		d.close(o)
	}
	d.serving.Wait()
}

// distinct is one door for each socket that is needed.
func distinct(list []Door) map[netip.AddrPort]Door {
	wild := map[netip.AddrPort]bool{}
	for _, door := range list {
		wild[door.Addr] = door.Addr.Addr().IsUnspecified()
	}
	out := map[netip.AddrPort]Door{}
	for _, door := range list {
		all := netip.IPv4Unspecified()
		if door.Addr.Addr().Is6() {
			all = netip.IPv6Unspecified()
		}
		if door.Addr.Port() == 0 || door.Addr.Addr() == all || !wild[netip.AddrPortFrom(all, door.Addr.Port())] {
			out[door.Addr] = door
		}
	}
	return out
}

// listen opens a door.
func listen(door Door) (net.Listener, error) {
	network := "tcp4"
	switch {
	case door.Both:
		network = "tcp"
	case door.Addr.Addr().Is6():
		network = "tcp6"
	}
	var conf net.ListenConfig
	if door.Reuse {
		conf.Control = reusePort
	}
	return conf.Listen(context.Background(), network, door.Addr.String())
}

// again is another listener of the same socket.
func again(ln net.Listener) (net.Listener, error) {
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("%T has no socket", ln)
	}
	f, err := tcp.File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}
