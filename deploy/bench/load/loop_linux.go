package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/upstrand/upstrand/deploy/bench/figures"
	"github.com/upstrand/upstrand/deploy/bench/poll"
	"golang.org/x/sys/unix"
)

// generator drives plain connections from one thread.
type generator struct {
	plan
	window
	tally
	poller  *poll.Poller
	conns   []conn
	request []byte
	buf     []byte
	counts  bool // the window is open
	over    bool // nothing new is sent
	busy    int  // connections that wait for an answer
	pace    *pace
}

// conn is one connection.
type conn struct {
	fd    int
	tls   *tls.Conn     // over fd; nil: plain
	out   []byte        // what of the request is still to be written
	sent  time.Duration // when it was sent, or at a fixed rate should have been
	waits bool
	reply reply
	mux   *multiplexer // for HTTP/2, which leaves the four before it alone
}

// big is how much of a body must be missing for it to be thrown away unread.
const big = 8 << 10

var errClosed = errors.New("the proxy closed a connection")

// loop runs the plan.
func loop(p plan) (figures.Result, error) {
	runtime.LockOSThread()
	g := &generator{plan: p, request: request(p), buf: make([]byte, 64<<10)}
	var err error
	if g.poller, err = poll.New(); err != nil {
		return figures.Result{}, err
	}
	defer g.close()
	if err := g.connect(); err != nil {
		return figures.Result{}, err
	}
	g.window.pid, g.base = p.pid, time.Now()
	if p.rate > 0 {
		g.pace = newPace(p.rate, p.conns)
	} else {
		g.start()
	}
	if err := g.turn(); err != nil {
		return figures.Result{}, err
	}
	res, err := g.result(&g.tally)
	if g.pace != nil {
		res.Late = g.pace.late
	}
	return res, err
}

// start makes the first requests.
func (g *generator) start() {
	for i := range g.conns {
		c := &g.conns[i]
		if g.mode != modeH2 {
			g.send(i, g.now())
			continue
		}
		c.mux = newMultiplexer(g)
		if _, _, err := c.write(c.mux.take()); err != nil {
			g.broken(c, err)
		}
	}
}

func (g *generator) connect() error {
	addr, err := netip.ParseAddrPort(g.addr)
	if err != nil || !addr.Addr().Is4() {
		return fmt.Errorf("-addr %q: allowed: an IPv4 address with a port", g.addr)
	}
	to := &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	for i := range g.plan.conns {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		g.conns = append(g.conns, conn{fd: fd})
		if err := unix.Connect(fd, to); err != nil {
			return fmt.Errorf("connection %d to %s: %w", i+1, g.addr, err)
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		if err := unix.SetNonblock(fd, true); err != nil {
			return err
		}
		if g.mode != modeH1 {
			if g.conns[i].tls, err = shake(fd, g.plan); err != nil {
				return fmt.Errorf("connection %d: %w", i+1, err)
			}
		}
		if err := g.poller.Add(fd, int32(i)); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) close() {
	for i := range g.conns {
		if fd := g.conns[i].fd; fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	_ = g.poller.Close()
}

// turn is the loop: warm-up, window, and the time that the last answers have to come.
func (g *generator) turn() error {
	for {
		now := g.now()
		switch {
		case !g.counts && now >= g.warm && !g.over:
			g.counts = true
			g.begin()
		case g.counts && now >= g.began+g.plan.window:
			g.end()
			g.counts, g.over = false, true
		}
		if g.over && (g.busy == 0 || now >= g.began+g.took+figures.MaxWait) {
			g.stalled += g.busy
			return nil
		}
		wait := 20 * time.Millisecond
		if g.pace != nil && !g.over {
			wait = min(wait, g.pace.release(g))
		}
		if err := g.poller.Spin(wait, g.ready); err != nil {
			return err
		}
	}
}

// send writes a request whose latency counts from the time at.
func (g *generator) send(i int, at time.Duration) {
	c := &g.conns[i]
	c.out, c.sent, c.waits = g.request, at, true
	g.busy++
	g.flush(c)
}

func (g *generator) flush(c *conn) {
	for len(c.out) > 0 {
		n, again, err := c.write(c.out)
		if err != nil {
			g.broken(c, err)
		}
		if err != nil || again {
			return
		}
		c.out = c.out[n:]
	}
}

// broken takes a connection out of the run.
func (g *generator) broken(c *conn, err error) {
	if c.fd < 0 {
		return
	}
	if g.fail(err); c.waits {
		g.busy--
	}
	if c.mux != nil {
		g.busy -= len(c.mux.open)
	}
	_ = unix.Close(c.fd)
	c.fd, c.waits, c.out = -1, false, nil
}

func (g *generator) ready(id int32) {
	c := &g.conns[id]
	if c.fd < 0 {
		return
	}
	g.flush(c)
	for c.fd >= 0 {
		n, most, again, err := g.read(c)
		switch {
		case err == nil && !again && n == 0:
			err = errClosed
		case err == nil && !again && !c.waits && c.mux == nil:
			err = fmt.Errorf("%d bytes that nobody asked for", n)
		}
		if err != nil {
			g.broken(c, err)
		}
		if err != nil || again {
			return
		}
		done, err := g.advance(c, n)
		if err != nil {
			g.broken(c, err)
			return
		}
		if done {
			g.done(int(id))
		}
		if n < most && c.tls == nil { // edge-triggered: more would be told of. TLS may have read on
			return
		}
	}
}

func (g *generator) read(c *conn) (n, most int, again bool, err error) {
	if c.tls != nil {
		n, again, err = outcome(c.tls.Read(g.buf))
		return n, len(g.buf), again, err
	}
	if c.reply.left >= big {
		most = min(c.reply.left, 4<<20)
		n, again, err = poll.Discard(c.fd, most)
		return n, most, again, err
	}
	n, again, err = poll.Read(c.fd, g.buf)
	return n, len(g.buf), again, err
}

func (g *generator) advance(c *conn, n int) (done bool, err error) {
	switch {
	case c.mux != nil:
		if err := c.mux.feed(g.buf[:n]); err != nil {
			return false, err
		}
		_, _, err := c.write(c.mux.take())
		return false, err
	case c.tls == nil && c.reply.left >= big:
		return c.reply.skip(n)
	}
	return c.reply.feed(g.buf[:n], g.length)
}

func (g *generator) done(i int) {
	c := &g.conns[i]
	now := g.now()
	c.waits = false
	g.busy--
	g.answered(now-c.sent, g.counts)
	switch {
	case g.over:
	case g.pace != nil:
		g.pace.free(g, i)
	default:
		g.send(i, now)
	}
}
