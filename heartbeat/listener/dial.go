package listener

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// wires keeps every connection of the group and of the fetches. It exists for two things that kafka-go leaves open:
// some of its exchanges (the SASL handshake, a metadata look-up) have no deadline at all, and a group that is being
// closed waits for whatever it is in. So a connection without a deadline gets one per read and write, and at the end of
// a listener all connections can be cut, after which nothing of kafka-go can block.
type wires struct {
	limit time.Duration
	dial  func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	open map[*wire]struct{}
	cut  bool
}

var errCut = errors.New("listener is stopping")

// dialer is base with its connections kept in w.
func (w *wires) dialer(base *kafka.Dialer) *kafka.Dialer {
	d := *base
	w.dial = base.DialFunc
	if w.dial == nil {
		w.dial = (&net.Dialer{
			LocalAddr:     base.LocalAddr,
			FallbackDelay: base.FallbackDelay,
			KeepAlive:     base.KeepAlive,
		}).DialContext
	}
	d.DialFunc = w.dialOne
	if d.Timeout == 0 || d.Timeout > w.limit {
		d.Timeout = w.limit
	}
	return &d
}

func (w *wires) dialOne(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := w.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &wire{Conn: conn, all: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		_ = conn.Close()
		return nil, errCut
	}
	if w.open == nil {
		w.open = map[*wire]struct{}{}
	}
	w.open[c] = struct{}{}
	return c, nil
}

// cutAll closes every connection and lets no new one be made.
func (w *wires) cutAll() {
	w.mu.Lock()
	w.cut = true
	open := w.open
	w.open = nil
	w.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close()
	}
}

// wire is a connection whose reads and writes always end.
type wire struct {
	net.Conn
	all *wires

	mu          sync.Mutex
	read, write bool // the user set a deadline
}

func (c *wire) SetDeadline(t time.Time) error {
	c.note(&c.read, t)
	c.note(&c.write, t)
	return c.Conn.SetDeadline(t)
}

func (c *wire) SetReadDeadline(t time.Time) error {
	c.note(&c.read, t)
	return c.Conn.SetReadDeadline(t)
}

func (c *wire) SetWriteDeadline(t time.Time) error {
	c.note(&c.write, t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *wire) Read(b []byte) (int, error) {
	if !c.noted(&c.read) {
		if err := c.Conn.SetReadDeadline(time.Now().Add(c.all.limit)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(b)
}

func (c *wire) Write(b []byte) (int, error) {
	if !c.noted(&c.write) {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(c.all.limit)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

func (c *wire) Close() error {
	c.all.mu.Lock()
	delete(c.all.open, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

func (c *wire) note(what *bool, t time.Time) {
	c.mu.Lock()
	*what = !t.IsZero()
	c.mu.Unlock()
}

func (c *wire) noted(what *bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *what
}
