package main

import (
	"errors"
	"fmt"
	"time"
)

// exchange is a request that waits for the end of its answer.
type exchange struct {
	sent time.Duration
	got  int // bytes of the body
}

// multiplexer keeps the streams of one HTTP/2 connection busy: a stream that ends makes room for the next.
type multiplexer struct {
	*generator
	block   []byte
	open    map[uint32]*exchange
	next    uint32
	in      []byte // the beginning of a frame that has not come completely
	out     []byte // frames to send when all that came has been read
	granted int    // bytes of bodies since the connection's window was widened
}

func newMultiplexer(g *generator) *multiplexer {
	m := &multiplexer{generator: g, block: block(g.plan), open: map[uint32]*exchange{}, next: 1, out: opening()}
	for range g.streams {
		m.request()
	}
	return m
}

func (m *multiplexer) request() {
	m.open[m.next] = &exchange{sent: m.now()}
	m.busy++
	m.out = appendFrame(m.out, frameHeaders, flagEndHeaders|flagEndStream, m.next, m.block)
	m.next += 2
}

// take gives what is to be sent. It is valid until feed.
func (m *multiplexer) take() []byte {
	out := m.out
	m.out = m.out[:0]
	return out
}

// feed reads on in what came.
func (m *multiplexer) feed(b []byte) error {
	if len(m.in) > 0 {
		b = append(m.in, b...)
	}
	for {
		f, rest, ok, err := cut(b)
		if err != nil {
			return err
		}
		if !ok {
			m.in = append(m.in[:0], b...)
			return nil
		}
		if err := m.frame(f); err != nil {
			return err
		}
		b = rest
	}
}

func (m *multiplexer) frame(f frame) error {
	switch f.kind {
	case frameHeaders:
		if m.open[f.stream] == nil {
			return fmt.Errorf("an answer on stream %d, which is not open", f.stream)
		}
		if err := ok200(f.payload, f.flags); err != nil {
			return err
		}
		return m.ended(f)
	case frameData:
		return m.data(f)
	case frameSettings:
		if f.flags&flagAck == 0 {
			m.out = appendFrame(m.out, frameSettings, flagAck, 0, nil)
		}
	case framePing:
		if f.flags&flagAck == 0 {
			m.out = appendFrame(m.out, framePing, flagAck, 0, f.payload)
		}
	case frameReset:
		return fmt.Errorf("stream %d was reset: code %#x", f.stream, f.payload)
	case frameGoAway:
		return fmt.Errorf("the proxy ends the connection: %q", f.payload)
	case frameContinuation:
		return errors.New("CONTINUATION: heads of this benchmark are short, it can't read them")
	}
	return nil
}

func (m *multiplexer) data(f frame) error {
	s := m.open[f.stream]
	if s == nil {
		return fmt.Errorf("a body on stream %d, which is not open", f.stream)
	}
	body, err := unpadded(f.payload, f.flags)
	if err != nil {
		return err
	}
	s.got += len(body)
	if m.granted += len(f.payload); m.granted > maxWindow/4 {
		m.out = appendWindow(m.out, m.granted)
		m.granted = 0
	}
	return m.ended(f)
}

// ended takes the end of a stream, if f is one.
func (m *multiplexer) ended(f frame) error {
	if f.flags&flagEndStream == 0 {
		return nil
	}
	s := m.open[f.stream]
	if s.got != m.length {
		return fmt.Errorf("a body of %d bytes, wanted %d", s.got, m.length)
	}
	delete(m.open, f.stream)
	m.busy--
	m.answered(m.now()-s.sent, m.counts)
	if !m.over {
		m.request()
	}
	return nil
}
