package proxy

import (
	"context"
	"fmt"
	"net"
)

// Inherited gives the socket of an address, as a Door says it, that was opened before this process began; nil: there is
// none. Shared tells that another process goes on to have it.
type Inherited func(network, addr string) (ln net.Listener, shared bool, err error)

// Socket is a listening socket of a door, and what a process that goes on with it finds it by.
type Socket struct {
	Network, Addr string // as Inherited is asked
	Listener      net.Listener
	Shared        bool // with a process that will go on to have it
}

// Sockets gives those of the open doors, for another process to go on with. They stay the doors'.
func (d *Doors) Sockets() []Socket {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Socket, 0, len(d.open))
	for _, o := range d.open {
		out = append(out, Socket{o.door.network(), o.door.Addr.String(), o.ln, o.shared})
	}
	return out
}

// network is the kind of the door's socket.
func (d Door) network() string {
	switch {
	case d.Both:
		return "tcp"
	case d.Addr.Addr().Is6():
		return "tcp6"
	}
	return "tcp4"
}

// socket is the one that was inherited for a door, or one that is opened.
func (d *Doors) socket(door Door) (ln net.Listener, shared bool, err error) {
	if d.inherit != nil {
		if ln, shared, err = d.inherit(door.network(), door.Addr.String()); ln != nil || err != nil {
			return ln, shared, err
		}
	}
	ln, err = listen(door)
	return ln, false, err
}

// listen opens a door.
func listen(door Door) (net.Listener, error) {
	var conf net.ListenConfig
	conf.SetMultipathTCP(false) // such a socket takes no filter (hearNoMore), and costs more
	if door.Reuse {
		conf.Control = reusePort
	}
	return conf.Listen(context.Background(), door.network(), door.Addr.String())
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
