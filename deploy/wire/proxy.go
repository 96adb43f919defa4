package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/confgen/dialect"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy"
)

// Proxy is a proxy in this process with one door.
type Proxy struct {
	Addr string

	p      *proxy.Proxy
	dir    string
	served chan error
}

// prepare makes a proxy that has nothing to serve by yet.
func prepare(set func(*proxy.Config)) (*Proxy, net.Listener, error) {
	dir, err := os.MkdirTemp("", "upstrand-wire-")
	if err != nil {
		return nil, nil, err
	}
	c := proxy.Config{Logger: zerolog.Nop()}
	if set != nil {
		set(&c)
	}
	p, err := proxy.New(c)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Proxy{Addr: ln.Addr().String(), p: p, dir: dir, served: make(chan error, 1)}, ln, nil
}

// FromFile serves a configuration. Text gives it for the address that it is served at.
func FromFile(text func(listen string) string) (*Proxy, error) {
	x, ln, err := prepare(nil)
	if err != nil {
		return nil, err
	}
	compiled, err := x.compile(text(x.Addr))
	if err == nil {
		if err = x.p.Use(compiled); err != nil {
			compiled.Close()
		}
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close(), os.RemoveAll(x.dir))
	}
	door := doorOf(compiled, netip.MustParseAddrPort(x.Addr))
	go func() { x.served <- x.p.ServeDoor(ln, door) }()
	return x, nil
}

// doorOf is the door that the file has at an address.
func doorOf(c *proxy.Compiled, addr netip.AddrPort) proxy.Door {
	door := proxy.Door{Addr: addr, Limits: c.Site().Client(addr)}
	for _, l := range c.Site().Listens() {
		if l.Addr == addr {
			door.TLS, door.HTTP2, door.ProxyProtocol, door.Conns, door.ConnsPerAddress = l.TLS, l.HTTP2, l.ProxyProtocol, l.Conns, l.ConnsPerAddress
		}
	}
	return door
}

func (x *Proxy) compile(text string) (*proxy.Compiled, error) {
	path := filepath.Join(x.dir, "test.conf")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	doc, faults := dialect.Read(path, dialect.Options{})
	if len(faults) > 0 {
		return nil, proxy.Faults(faults)
	}
	return x.p.Compile(&proxy.File{Name: path, Config: doc.Config, Site: doc.Site, Resolver: doc.Resolver, Fault: doc.Fault})
}

// FromTopology serves one service that a topology publishes, at /. Set changes the proxy's settings; it may be nil.
func FromTopology(set func(*proxy.Config), backends ...string) (*Proxy, error) {
	x, ln, err := prepare(set)
	if err != nil {
		return nil, err
	}
	c := &topology.Config{
		Upstreams: []topology.Upstream{{Name: "back", Origin: topology.Derived, Directives: []topology.Directive{{"discover", "back"}}}},
		Routes:    []topology.Route{{Path: "/", Origin: topology.Derived, Upstream: "back"}},
		Services:  []topology.Service{{Name: "back"}},
	}
	for i, addr := range backends {
		c.Services[0].Instances = append(c.Services[0].Instances, topology.Instance{ID: fmt.Sprint(i), Addr: addr, Incarnation: 1, Order: int64(i + 1)})
	}
	if err := x.p.Apply(&topology.Topology{Version: 1, Epoch: 1, At: time.Now(), Config: c}); err != nil {
		return nil, errors.Join(err, ln.Close(), os.RemoveAll(x.dir))
	}
	go func() { x.served <- x.p.Serve(ln) }()
	return x, nil
}

// Close lets nobody wait: what is open is cut after a moment.
func (x *Proxy) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := x.p.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, <-x.served, os.RemoveAll(x.dir))
}
