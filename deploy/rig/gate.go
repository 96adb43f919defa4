package rig

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// errCut is what calls over a cut network end with.
var errCut = errors.New("rig: the network to Kafka is cut")

// Gate is the network between one instance and Kafka. While it is cut nothing passes: calls hang until their context ends, as
// packets do that nobody answers. An answer that is under way when the cut comes is lost too.
type Gate struct {
	inner  kafka.RoundTripper
	cut    atomic.Pointer[chan struct{}] // closed when the cut ends; nil: open
	severe atomic.Bool                   // fail at once, for ever: the process is dead
}

// NewGate is an open gate.
func NewGate(inner kafka.RoundTripper) *Gate { return &Gate{inner: inner} }

// Cut closes the gate until Mend.
func (g *Gate) Cut() {
	mended := make(chan struct{})
	if !g.cut.CompareAndSwap(nil, &mended) {
		return
	}
}

// Mend opens the gate.
func (g *Gate) Mend() {
	if mended := g.cut.Swap(nil); mended != nil {
		close(*mended)
	}
}

// sever lets nothing pass ever again.
func (g *Gate) sever() { g.severe.Store(true) }

// RoundTrip implements kafka.RoundTripper.
func (g *Gate) RoundTrip(ctx context.Context, addr net.Addr, req protocol.Message) (protocol.Message, error) {
	if g.severe.Load() {
		return nil, errCut
	}
	if mended := g.cut.Load(); mended != nil {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-*mended:
			return nil, errCut // what was sent before is lost; the caller's next try passes
		}
	}
	resp, err := g.inner.RoundTrip(ctx, addr, req)
	if g.cut.Load() != nil || g.severe.Load() {
		return nil, errors.Join(errCut, err)
	}
	return resp, err
}
