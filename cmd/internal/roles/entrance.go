package roles

import (
	"context"
	"net"

	"github.com/upstrand/upstrand/cmd/internal/admin"
	"github.com/upstrand/upstrand/cmd/internal/conffile"
	"github.com/upstrand/upstrand/proxy"
)

// entrance is where a proxy's traffic comes in: the one address of --listen, or the listen lines of a file, which come
// and go with it.
type entrance struct {
	bound *net.TCPAddr                // the first address
	serve func(context.Context) error // takes connections until ctx ends or the proxy shuts down
	close func() error                // for an entrance that serves nobody
	left  func()                      // to be called when the last request has ended
	state func() *proxy.FileState     // nil: there is no file
}

func (x *Proxy) entrance(p *Process, px *proxy.Proxy, published bool) (*entrance, error) {
	if x.Conf != "" {
		return x.fileEntrance(p, px, published)
	}
	ln, err := admin.Listen(x.Listen, "listen", "proxy", p.Log)
	if err != nil {
		return nil, err
	}
	return &entrance{
		bound: ln.Addr().(*net.TCPAddr), close: ln.Close, left: func() {},
		serve: func(context.Context) error { return px.Serve(ln) }, // until the proxy shuts down
	}, nil
}

func (x *Proxy) fileEntrance(p *Process, px *proxy.Proxy, published bool) (*entrance, error) {
	got := listen()
	c, err := newConf(x.Conf, published, px, p.Log.With().Str("role", "proxy").Logger(), p.Metrics)
	if err == nil {
		err = c.load()
		if err != nil {
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
			c.doors.Close()
			return nil, err
		}
	}
	return &entrance{
		bound: bound, state: c.State, left: got.stop,
		close: func() error { got.stop(); c.doors.Close(); return nil },
		serve: func(ctx context.Context) error { return c.serve(ctx, got, x.Watch) },
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
