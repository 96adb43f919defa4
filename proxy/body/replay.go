package body

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/upstrand/upstrand/proxy/forward"
)

var (
	errNotHeld = errors.New("the body is not held any more")
	errClosed  = errors.New("the attempt is over")
)

// Stream is a body as a client sends it. Its methods but Interrupt are called by one goroutine at a time.
type Stream interface {
	// Read is io.Reader's; io.EOF may come with the last bytes.
	Read([]byte) (int, error)
	// Interrupt makes a Read that is under way end soon, with an error unless bytes had come, and every later one fail. It may
	// be called at any time.
	Interrupt()
	// Trailer is what followed the body; valid after io.EOF.
	Trailer() []forward.Field
}

// Options are what a Replay works with.
type Options struct {
	Length int64  // that the client announced; -1: unknown
	Memory int    // bytes held there
	Folder string // for what is held beyond; empty: the system's for such files
}

// Replay is a request's body. Its first bytes are held as the client sends them, so that another attempt can send them
// again; beyond the limit they are let go and the body can be sent once only, unless the whole of it was taken in before,
// or more is to be kept.
//
// Reads from the client are made by a goroutine of their own: an attempt that is over stops waiting for a slow client
// at once, and what arrives after all is there for the next.
type Replay struct {
	from   Stream
	length int64  // announced; -1: unknown
	limit  int    // bytes held in memory
	dir    string // for what Hold does not hold in memory; empty: the system's

	mu    sync.Mutex
	held  []byte        // what was read and can still be asked for
	file  *spill        // what comes after held; nil: nothing does
	at    int64         // of the next byte in held and file
	taken int64         // bytes that the client sent
	most  int64         // and may send; 0: no limit
	kept  int64         // bytes that may be held in all, also in file; 0: only in memory, below 0: as many as there is room for
	over  bool          // bytes before held are lost
	end   error         // of the client's side, after held and file
	ready chan struct{} // closed when the read that is going on ends; nil: none is
	done  bool          // nobody may read any more: the stream is somebody else's
}

// New makes the replay of a stream. Who made it calls Finish in the end.
func New(from Stream, o Options) *Replay {
	return &Replay{from: from, length: o.Length, limit: o.Memory, dir: o.Folder}
}

// Read is forward.Source's.
func (s *Replay) Read(p []byte) (int, error) { return s.ReadUntil(p, nil) }

// ReadUntil waits for bytes until stop is closed. A reader that was stopped takes nothing away from the one that follows
// a Rewind.
func (s *Replay) ReadUntil(p []byte, stop <-chan struct{}) (int, error) {
	for {
		n, wait, err := s.next(p, stop)
		if wait == nil {
			return n, err
		}
		select {
		case <-wait:
		case <-stop:
			return 0, errClosed
		}
	}
}

// next gives what is at hand, or what to wait for.
func (s *Replay) next(p []byte, stop <-chan struct{}) (n int, wait chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-stop:
		return 0, nil, errClosed
	default:
	}
	if s.done {
		return 0, nil, errClosed
	}
	if s.at < s.size() {
		if n, err = s.copy(p); err == nil && s.at == s.size() {
			err = s.end
		}
		return n, nil, err
	}
	if s.end != nil {
		return 0, nil, s.end
	}
	if s.ready == nil {
		s.ready = make(chan struct{})
		go s.fill(s.ready)
	}
	return 0, s.ready, nil
}

// size is the bytes that can be asked for. The mutex is held.
func (s *Replay) size() int64 { return int64(len(s.held)) + s.file.size() }

func (s *Replay) copy(p []byte) (n int, err error) {
	if inMemory := int64(len(s.held)); s.at < inMemory {
		n = copy(p, s.held[s.at:])
	} else {
		n, err = s.file.read(p, s.at-inMemory)
	}
	s.at += int64(n)
	return n, err
}

var chunks = sync.Pool{New: func() any { return new([16 << 10]byte) }}

func (s *Replay) fill(done chan struct{}) {
	chunk := chunks.Get().(*[16 << 10]byte)
	defer chunks.Put(chunk)
	n, err := s.fromClient(chunk[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err = s.count(n, err)
	if lost := s.store(chunk[:n]); lost != nil {
		err = lost
	}
	s.end = err
	s.ready = nil
	close(done)
}

// fromClient turns a panic of the stream into an error: nothing else could catch it here, and one request must not end the
// process.
func (s *Replay) fromClient(p []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, fmt.Errorf("read the request's body: %v", v)
		}
	}()
	return s.from.Read(p)
}

// count adds what came, and turns what is too much of it away. The mutex is held.
func (s *Replay) count(n int, err error) (int, error) {
	if s.taken += int64(n); s.most > 0 && s.taken > s.most {
		return 0, fmt.Errorf("%w: more than %d bytes", forward.ErrTooLarge, s.most)
	}
	return n, err
}

// Whole tells that all of the body is at hand, so that no Read waits.
func (s *Replay) Whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Is(s.end, io.EOF)
}

// Trailer is what the client sent after the body.
func (s *Replay) Trailer() []forward.Field { return s.from.Trailer() }

// Rewind starts at the first byte again, if all that was read is held.
func (s *Replay) Rewind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errNotHeld
	}
	s.at = 0
	return nil
}

// Rewindable is forward.Source's.
func (s *Replay) Rewindable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over
}

// Finish ends a read from the client that nobody waits for any more, and lets go of what was taken in. The client's
// connection can't be used for another request when a read was ended.
func (s *Replay) Finish() {
	s.mu.Lock()
	s.done = true
	ready := s.ready
	s.mu.Unlock()
	if ready != nil {
		s.from.Interrupt()
		<-ready
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file.close()
	s.file, s.held, s.at, s.over = nil, nil, 0, true
}
