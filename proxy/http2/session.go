package http2

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"

	"github.com/upstrand/upstrand/proxy/front"
)

// session is a client's connection. One goroutine reads its frames (run), one writes what waits in out (flush), and each
// request has one while it is answered.
type session struct {
	server *Server
	conn   net.Conn
	info   front.ConnInfo
	born   int64 // on the server's clock
	in     *bufio.Reader
	fr     *http2.Framer // reads in
	heads  heads

	mu      sync.Mutex // guards what follows
	streams map[uint32]*stream
	last    uint32 // highest stream that the client began
	// running is the requests whose handler has not returned; those of streams that are over too.
	running  int
	served   int64 // requests so far
	abuse    int
	window   int64 // bytes of bodies that the client takes now
	waiters  int   // streams that wait for it, or for their own
	initial  int64 // and of those of a new stream
	unspent  int64 // of connWindow: bytes of bodies that came and are not given back yet
	owed     int64 // and are, but the client was not told
	forgiven []uint32
	late     []late // by their time
	leaving  bool   // GOAWAY was sent, or is in out
	broken   error  // nothing more can be written
	out      []byte
	batch    uint64 // counts the buffers that out was
	spare    []byte
	flushing bool      // the flusher was told
	room     sync.Cond // out was written, or never will be
	table    bool      // a head was written: our table's size was told

	useful, fruitless int64 // bytes of frames since then; these are the reader's alone
	since             int64

	quiet  int           // sweeps that found no request, in turn; guarded by mu
	wake   chan struct{} // of the flusher
	over   chan struct{} // closed when the flusher is to end
	idle   idlers
	stamps stamps
}

// stamps are when what is going on must have come on, on the server's clock; 0: nothing is.
type stamps struct {
	writing atomic.Int64 // a write to the connection
	heading atomic.Int64 // the preface, or a head that is not whole
	unused  atomic.Int64 // the connection without requests
	closing atomic.Int64 // the end of it
}

var errAbuse = http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)

func newSession(s *Server, c net.Conn, info front.ConnInfo) *session {
	x := &session{
		server: s, conn: c, info: info, born: s.now(), streams: map[uint32]*stream{}, window: 65535, initial: 65535,
		wake: make(chan struct{}, 1), over: make(chan struct{}),
	}
	x.room.L = &x.mu
	x.in = bufio.NewReaderSize(c, 4<<10)
	x.fr = http2.NewFramer(io.Discard, x.in)
	x.fr.SetReuseFrames()
	x.fr.SetMaxReadFrameSize(frameSize)
	x.heads.init(info.Settings.ClientMax)
	x.idle.work = make(chan *stream)
	return x
}

// run serves the connection to its end.
func (x *session) run() {
	var flusher sync.WaitGroup
	flusher.Go(x.flush)
	defer func() { // whatever happened
		_ = x.conn.Close()
		x.mu.Lock()
		x.fail(errGoneClient)
		x.dropAll()
		x.mu.Unlock()
		close(x.over)
		flusher.Wait()
		x.idle.end()
	}()
	x.finish(x.talk())
}

// dropAll ends all requests, and tells nobody. The mutex is held.
func (x *session) dropAll() {
	for _, s := range x.streams {
		x.reset(s, errGoneClient)
	}
	x.late = nil
}

var errGoneClient = errors.New("the client is gone")

// talk reads frames until there can be no more.
func (x *session) talk() error {
	x.stamps.heading.Store(x.server.now() + int64(x.info.Settings.ClientHeader))
	x.mu.Lock()
	x.writeSettings()
	x.signal()
	x.mu.Unlock()
	if err := x.preface(); err != nil {
		return err
	}
	x.stamps.heading.Store(0)
	x.touch()
	for {
		f, err := x.fr.ReadFrame()
		if x.stamps.closing.Load() != 0 {
			return nil
		}
		if err == nil {
			err = x.frame(f)
		}
		var broken http2.StreamError
		switch {
		case err == nil:
		case errors.As(err, &broken):
			if err := x.refuse(broken); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// preface reads what a connection begins with: a text, and SETTINGS.
func (x *session) preface() error {
	var text [len(http2.ClientPreface)]byte
	if _, err := io.ReadFull(x.in, text[:]); err != nil {
		return err
	}
	if string(text[:]) != http2.ClientPreface {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	f, err := x.fr.ReadFrame()
	if err != nil {
		return err
	}
	settings, ok := f.(*http2.SettingsFrame)
	if !ok {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return x.settings(settings)
}
