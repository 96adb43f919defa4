package forward

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Departer is what a Tunnel of a Backend may be. OnFarewell has f called, once and from any goroutine, when the tunnel has to
// end and still may do so in the way of its protocol: at once, if it had to end already. It is cut a moment later (2 s).
// A nil f takes the one before back.
type Departer interface{ OnFarewell(f func()) }

// farewellTime is how long both sides of a WebSocket have to answer a close frame.
const farewellTime = time.Second

var webSocketToken = []byte("websocket")

func isWebSocket(proto []byte) bool { return bytes.EqualFold(proto, webSocketToken) }

// webSocket copies both ways as bothWays does. It follows the frames (RFC 6455, 5.2) as
// they pass, so that a tunnel which has to end gets a close frame with code 1001 in each direction, between two frames; what
// follows there is dropped. It returns the bytes that went to the front.
func webSocket(front, back io.ReadWriteCloser) (n int64) {
	toClient, toServer := &relay{from: back, to: front}, &relay{from: front, to: back, masks: true}
	defer func() { n = toClient.bytes }() // when a farewell is over too
	end := func() {
		_ = front.Close()
		_ = back.Close()
	}
	if d, ok := back.(Departer); ok {
		p := &parting{done: make(chan struct{})}
		d.OnFarewell(func() { p.begin(end, toClient, toServer) })
		defer p.over(d)
	}
	var (
		over  atomic.Int32
		going sync.WaitGroup
	)
	run := func(r *relay) {
		answered, err := r.run()
		if err != nil || over.Add(1) == 2 || !answered && !halve(r.to) {
			end()
		}
	}
	going.Go(func() { run(toServer) })
	run(toClient)
	going.Wait()
	return
}

// parting is the end of a WebSocket that was asked for. Nothing of it is left when over returns.
type parting struct {
	done  chan struct{} // closed when both directions have ended
	going sync.WaitGroup

	mu    sync.Mutex
	ended bool // or has begun
}

// begin says goodbye in both directions, and ends what is left a moment later.
func (p *parting) begin(end func(), relays ...*relay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	for _, r := range relays { // all of them first: one side's answer is not for the other
		r.leaving.Store(true)
	}
	for _, r := range relays {
		p.going.Go(r.leave)
	}
	p.going.Go(func() {
		limit := time.NewTimer(farewellTime)
		defer limit.Stop()
		select {
		case <-limit.C:
			end()
		case <-p.done:
		}
	})
}

func (p *parting) over(d Departer) {
	d.OnFarewell(nil)
	close(p.done)
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.going.Wait()
}

// relay is one direction of a WebSocket.
type relay struct {
	from  io.Reader
	to    io.Writer
	masks bool // frames of this direction are masked
	bytes int64

	leaving atomic.Bool // a close frame of ours is to be sent at the end of the frame under way

	mu     sync.Mutex // held while something is written
	frames frames
	left   bool // a close frame was sent, by us or by the side itself
}

// run copies until the side ends, or has answered our close frame with one of its own. That it has no more is no error.
func (r *relay) run() (answered bool, err error) {
	var room tunnelRoom
	defer room.free()
	for {
		buf := room.next()
		n, err := r.from.Read(buf)
		if n > 0 {
			answered, failed := r.pass(buf[:n])
			if r.leaving.Load() {
				r.leave() // it was asked for while something was written
			}
			if answered || failed != nil {
				return answered, failed
			}
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		room.read(n)
	}
}

// pass writes what was read, but nothing behind a close frame of ours.
func (r *relay) pass(b []byte) (answered bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.left && len(b) > 0 {
		if r.leaving.Load() && r.frames.between() {
			r.farewell()
			break
		}
		n := len(b)
		if r.leaving.Load() {
			n = r.frames.next(b)
		} else {
			r.frames.through(b)
		}
		wrote, err := r.to.Write(b[:n])
		r.bytes += int64(wrote)
		if err != nil {
			return false, err
		}
		if b = b[n:]; r.leaving.Load() && r.frames.between() {
			r.farewell()
		}
	}
	for len(b) > 0 { // it is dropped, but for what it says
		b = b[r.frames.next(b):]
		if r.frames.closes && r.frames.between() {
			return true, nil
		}
	}
	return false, nil
}

// leave sends a close frame, now or at the end of the frame under way.
func (r *relay) leave() {
	r.leaving.Store(true)
	if !r.mu.TryLock() {
		return // who writes looks again afterwards
	}
	defer r.mu.Unlock()
	if !r.left && r.frames.between() {
		r.farewell()
	}
}

// farewell writes the close frame, unless the side has sent one itself. The mutex is held, and no frame is under way.
func (r *relay) farewell() {
	r.left = true
	if r.frames.closes {
		return
	}
	frame := binary.BigEndian.AppendUint16([]byte{0x80 | opcodeClose, 2}, closeGoingAway)
	if r.masks {
		var key [4]byte
		binary.BigEndian.PutUint32(key[:], rand.Uint32())
		frame = append([]byte{frame[0], 0x80 | frame[1]}, key[0], key[1], key[2], key[3], frame[2]^key[0], frame[3]^key[1])
	}
	n, _ := r.to.Write(frame) // who can't take it is cut soon
	r.bytes += int64(n)
}

const (
	opcodeClose    = 8
	closeGoingAway = 1001
)

// frames follows the frames of one direction by their heads.
type frames struct {
	head   [14]byte
	have   int    // bytes of the head
	want   int    // bytes that it has, as far as is known
	left   uint64 // of the payload
	closes bool   // the last head was that of a close frame
}

// between reports whether no frame is under way.
func (f *frames) between() bool { return f.have == 0 && f.left == 0 }

// through takes all of b in.
func (f *frames) through(b []byte) {
	for len(b) > 0 {
		b = b[f.next(b):]
	}
}

// next takes in what is left of the frame under way, or the frame that begins, as far as b has it, and returns how much that is.
func (f *frames) next(b []byte) (n int) {
	for f.left == 0 && n < len(b) {
		f.head[f.have] = b[n]
		f.have++
		n++
		switch f.have {
		case 1:
			continue
		case 2:
			f.want = 2
			switch f.head[1] & 0x7f {
			case 126:
				f.want += 2
			case 127:
				f.want += 8
			}
			if f.head[1]&0x80 != 0 {
				f.want += 4
			}
		}
		if f.have < f.want {
			continue
		}
		f.begin()
		if f.left == 0 {
			return n
		}
	}
	took := int(min(f.left, uint64(len(b)-n)))
	f.left -= uint64(took)
	return n + took
}

// begin is called when the head is whole.
func (f *frames) begin() {
	f.have = 0
	f.closes = f.head[0]&0x0f == opcodeClose
	switch n := f.head[1] & 0x7f; n {
	case 126:
		f.left = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		f.left = binary.BigEndian.Uint64(f.head[2:])
	default:
		f.left = uint64(n)
	}
}
