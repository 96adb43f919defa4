package roles

import (
	"context"
	"net"

	"github.com/upstrand/upstrand/cmd/internal/conffile"
	"github.com/upstrand/upstrand/proxy"
)

// entrance is where a proxy's traffic comes in: the addresses of flags, or the listen lines of a file, which come and go
// with it. Connections wait until serve is called.
type entrance struct {
	bound *net.TCPAddr                // the first address
	serve func(context.Context) error // takes connections until ctx ends
	close func()                      // for an entrance that serves nobody
	left  func()                      // to be called when the last request has ended
	state func() *proxy.FileState     // nil: there is no file
}

func (x *Proxy) entrance(p *Process, px *proxy.Proxy, published bool) (*entrance, error) {
	if x.Conf != "" {
		return x.fileEntrance(p, px, published)
	}
	return x.flagEntrance(p, px)
}

// port is an address that a flag opens.
type port struct {
	flag, addr string
	door       proxy.Door // but for its address
}

// ports are those of the flags.
func (x *Proxy) ports() []port {
	door := x.Clients.door(proxy.Door{HTTP2: x.TLS.HTTP2})
	return append([]port{{"listen", x.Listen, door}}, x.TLS.ports(door)...)
}

func (x *Proxy) flagEntrance(p *Process, px *proxy.Proxy) (*entrance, error) {
	opened := map[string]socket{}
	doors := proxy.NewDoors(px.ServeDoor)
	p.retire = append(p.retire, doors.Share)
	doors.Inherit(func(_, addr string) (net.Listener, bool, error) {
		return opened[addr].Listener, opened[addr].shared, nil
	}, true)
	var (
		list  []proxy.Door
		bound *net.TCPAddr
	)
	for _, port := range x.ports() {
		ln, shared, err := p.listen(port.addr, port.flag, "proxy")
		if err != nil {
			closeAll(opened)
			return nil, err
		}
		at := ln.Addr().(*net.TCPAddr)
		if bound == nil {
			bound = at
		}
		port.door.Addr = at.AddrPort()
		opened[port.door.Addr.String()] = socket{ln, shared}
		list = append(list, port.door)
	}
	change, err := doors.Prepare(list)
	if err != nil {
		closeAll(opened)
		return nil, err
	}
	change.Commit()
	got := listen(p.replaceable())
	if len(x.TLS.Certs) > 0 || x.PeerTLS.Cert != "" {
		got.file()
	}
	return &entrance{
		bound: bound, left: got.stop,
		close: func() { got.stop(); p.abandon(doors) },
		serve: func(ctx context.Context) error {
			doors.Release()
			defer doors.Close()
			return follow(ctx, p, px, doors, got)
		},
	}, nil
}

// socket is one that is listened on.
type socket struct {
	net.Listener
	shared bool // with systemd, which keeps it
}

func closeAll(opened map[string]socket) {
	for _, ln := range opened {
		_ = ln.Close()
	}
}

// follow obeys signals until ctx ends.
func follow(ctx context.Context, p *Process, px *proxy.Proxy, doors *proxy.Doors, got *signals) error {
	for {
		select {
		case <-got.reopen:
			px.ReopenLogs()
		case <-got.reload:
			px.RenewCertificates()
		case <-got.replace:
			if next := p.replace(ctx, nil); next != nil {
				got.handOn(next)
			}
		case err := <-doors.Failed():
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func (x *Proxy) fileEntrance(p *Process, px *proxy.Proxy, published bool) (*entrance, error) {
	got := listen(p.replaceable())
	got.file()
	c, err := newConf(x.Conf, published, px, p.Log.With().Str("role", "proxy").Logger(), p.Metrics)
	if err == nil {
		c.doors.Inherit(p.sockets.Listener, true)
		p.retire = append(p.retire, c.doors.Share)
		c.replace = p.replace
		if err = c.load(); err != nil {
			err = conffile.Summary(x.Conf, err)
		}
	}
	if err != nil {
		got.stop()
		return nil, err
	}
	addrs := c.State().Listen
	p.Log.Info().Strs("addr", addrs).Str("for", "proxy").Str("file", x.Conf).Msg("listening")
	bound := &net.TCPAddr{}
	if len(addrs) > 0 {
		if bound, err = net.ResolveTCPAddr("tcp", addrs[0]); err != nil {
			got.stop()
			p.abandon(c.doors)
			return nil, err
		}
	}
	return &entrance{
		bound: bound, state: c.State, left: got.stop,
		close: func() { got.stop(); p.abandon(c.doors) },
		serve: func(ctx context.Context) error {
			c.doors.Release()
			return c.serve(ctx, got, x.Watch)
		},
	}, nil
}

// serve follows the file until ctx ends, then closes the doors. The signals stay taken, and without effect: SIGHUP
// must not end a process in which requests are still open.
func (c *conf) serve(ctx context.Context, got *signals, watch bool) error {
	inner, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(inner, got, watch)
	}()
	var err error
	select {
	case <-ctx.Done():
	case err = <-c.doors.Failed():
	}
	cancel()
	<-done
	c.doors.Close()
	return err
}
