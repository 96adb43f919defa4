package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/proxyproto"
)

// Field is one header or trailer line. Names compare without regard to case.
type Field struct{ Name, Value []byte }

// Request is a client's request, and as it is sent on: with Outgoing the fields are those for the backend. The engine that
// made it uses it, and the bytes of it, again when Handle has returned: who needs something of it for longer copies that.
type Request struct {
	Method    []byte
	Authority []byte // Host as the client said it
	Target    []byte // origin form, as the client sent it; or "*"
	Fields    []Field
	Length    int64  // of the body in bytes; 0: none, -1: unknown
	Body      Source // nil without a body
	Remote    netip.Addr
	Secure    bool // came over TLS
	// Plain: the names of all fields are known to be of letters, digits and hyphens only.
	Plain bool

	// What follows is known of a client's request only.
	RemotePort uint16
	Local      netip.AddrPort       // where it was taken
	Proto      string               // HTTP/1.0, HTTP/1.1 or HTTP/2.0
	Line       []byte               // of HTTP/1: the first line as it came, as far as it was read; nil: unknown
	Connection uint64               // number of the client's connection; 0: unknown
	Served     int64                // requests on it, with this one; 0: unknown
	TLS        *tls.ConnectionState // of the client's connection; nil: it has none
	// Proxy is what a PROXY protocol header said at the connection's beginning; nil: there was none. Remote is the socket's all
	// the same: whether the header is believed is not the engine's to say.
	Proxy *proxyproto.Info

	HeadSize int64 // bytes of the head as it came, its first line with it; 0: unknown
	// Scratch is a place where a handler may keep memory of its own from one request to another; the engine touches nothing
	// in it. Nil: there is none. What is there belongs to the request until Handle returns, and may be forgotten afterwards.
	Scratch *any

	// Invalid says why it is no proper request all the same, for the client to read; such a one is answered with 400 and
	// goes nowhere. Empty: it is one.
	Invalid string
	Refuse  int // the status for Invalid; 0: 400
}

// Source is a stream of body bytes. It belongs to one reader at a time.
type Source interface {
	// Read is io.Reader's; io.EOF may come with the last bytes.
	Read([]byte) (int, error)
	// Trailer is what followed the body; valid after io.EOF.
	Trailer() []Field
	// Rewind starts again at the first byte, so that another attempt can send the body. It fails when those bytes are no
	// longer held. The attempt that read before must have been closed.
	Rewind() error
	// Rewindable tells whether Rewind would succeed now.
	Rewindable() bool
}

// AtHand is a Source that can give what is left of it in one piece when all of that is there already.
type AtHand interface {
	// AtHand gives all that is left of the body when it is at hand and its end is known: then the body is at its end, as after a
	// Read that gave io.EOF. The bytes are valid as long as the memory of the attempt. With false nothing has happened, and Read
	// is to be used.
	AtHand() (rest []byte, ok bool)
}

// Holder is a Source that can take the whole body in before any of it is sent.
type Holder interface {
	// Hold reads the body to its end and keeps it; it gives the length in bytes. Above limit bytes (0: no limit) it fails with
	// ErrTooLarge.
	Hold(limit int64) (int64, error)
}

// Keeper is a Source that can hold more of what it reads than it does by itself, so that the body can be sent again.
type Keeper interface {
	// Keep has so many bytes of the body held as they are read, as far as there is room; what is longer is held no more and can
	// be sent once only. It is called before anything reads the body. 0: as much as there is room for.
	Keep(bytes int64)
}

// Limiter is a Source whose size can be limited.
type Limiter interface {
	// Limit makes reads beyond so many bytes of body fail with ErrTooLarge.
	Limit(bytes int64)
}

// ErrTooLarge is wrapped by errors about a request's body that is larger than it may be.
var ErrTooLarge = errors.New("the request's body is too large")

// Headless is the status of an answer without a head, as HTTP/0.9 had it: all that comes is body, and as such it goes to
// the client.
const Headless = 9

// Client is the side that waits for the answer. Its methods are called from one goroutine. An error means that the
// client is gone.
type Client interface {
	// Inform passes an informational answer (1xx but 101) on.
	Inform(status int, fields []Field) error
	// Head begins the answer; length is that of the body, -1 when unknown.
	Head(status int, fields []Field, length int64) error
	// Write passes body bytes on, and does not hold them back.
	Write([]byte) error
	// End completes the answer.
	End(trailer []Field) error
	// Abort cuts the connection: the client can tell that an answer which was begun is not whole, and one that seems to be
	// gone gets none.
	Abort()
	// Tunnel turns the connection over after a Head with 101. The caller closes it. With ErrNoTunnel nothing was said yet, and
	// another answer may be given.
	Tunnel() (io.ReadWriteCloser, error)
}

// Finisher is a Client that takes the last bytes of a body together with the end, so that a small answer is one write.
type Finisher interface {
	// Finish is Write and End in one; last may be empty.
	Finish(last []byte, trailer []Field) error
}

// Splicer is a Client that lets somebody else write bytes of a body to its socket.
type Splicer interface {
	// Socket is asked after Head. It sends what is held back and gives the connection that bytes of the body can be written to
	// as they are; false: there is none, since they are encrypted or put into chunks.
	Socket() (*net.TCPConn, bool)
	// Sent tells of bytes that were written there, and of the error that writing ended with. An error of its own means that no
	// more may be written.
	Sent(n int64, err error) error
}

// Spliced is a Source of which part can go to a socket without passing through here.
type Spliced interface {
	// Splice writes to the socket as the bytes come, and leaves so many bytes at the end to be read, or more. Each piece is
	// told, with the error of writing it; when that gives an error, it is Splice's. Other errors are Read's. With no error
	// and nothing written Read is to be used.
	Splice(to *net.TCPConn, leave int64, sent func(n int64, err error) error) (int64, error)
}

// Corker is a Client that sends the head of an answer of unknown length at once, unless it is told that more follows.
type Corker interface {
	// Cork, called before Head, says that the first Write, Finish or End follows at once, without a wait for the backend: the
	// head may wait for it. It holds for one Head.
	Cork()
}

// ErrNoTunnel is wrapped by errors about a request that can't become a tunnel.
var ErrNoTunnel = errors.New("the request can't become a tunnel")

// Backend is one attempt at one peer. Its errors are of type *Error.
type Backend interface {
	// Send sends the request, as far as the peer takes it.
	Send(*Request) error
	// Head gives the next head of the answer: informational ones first, each once, then the final one.
	Head() (status int, fields []Field, err error)
	// Body is the answer's body; Rewind of it always fails.
	Body() Source
	// Sent tells how far the request came.
	Sent() Progress
	// Tunnel is the raw connection after a head with 101.
	Tunnel() (io.ReadWriteCloser, error)
	// Close ends the attempt: afterwards nothing reads the request's body any more. The connection is kept when the answer
	// was read to its end, or what is left of it, 64 KB at most, is already there; else it is closed. It may be called twice.
	Close()
}

// Releaser is a Backend whose memory can be used again. Nothing that came of it, its fields among them, may be touched
// after Release, which is called once, after the last Close.
type Releaser interface{ Release() }

// Ready is a Backend that can tell whether bytes of the answer's body, or its end, are at hand, so that the next Read does not
// wait.
type Ready interface{ Ready() bool }

// Progress is how far an attempt came. What is not known to be otherwise counts as sent and read.
type Progress struct {
	Connected bool          // there was a connection
	Connect   time.Duration // how long it took to have it; 0 for a kept one
	Kept      bool          // it went over a kept connection
	Out, In   int64         // bytes that this attempt sent and received on the wire, 0 when unknown
	Sent      bool          // bytes of the request left us; a refused connect sent nothing
	Unread    bool          // proven: it went over a kept connection that the peer had already closed and nothing of it was taken
}

// Opener is the engine's side that reaches peers.
type Opener interface {
	// Open prepares an attempt at peer; nothing is sent yet. With fresh no kept connection is used. Ctx ends the attempt.
	Open(ctx context.Context, peer *balance.Peer, fresh bool) Backend
}

// Handler serves one request and has given its answer when it returns; without a Head the client is cut off. Ctx ends when the client is gone.
type Handler interface {
	Handle(ctx context.Context, r *Request, c Client)
}

// Error is a failure of an attempt.
type Error struct {
	Class Class
	Err   error
}

func (e *Error) Error() string { return e.Class.String() + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }
