package site

import (
	"compress/gzip"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/upstrand/upstrand/proxy/forward"
)

// sentState is the way of an answer to the client: every answer, whoever made it, goes through it. It is the client that
// an exchange sees, and changes head and body as the configuration says on the way to the real one.
type sentState struct {
	r       *request
	list    fieldList  // the head as it went out
	passed  fieldList  // what of a backend's head goes on, behind ownFields
	room    *fieldRoom // the memory of both; nil: there was no head yet
	bytes   int64      // of the body, as sent
	length  int64      // of the body, as announced; -1: unknown
	squeeze *gzip.Writer
	proxied bool // the answer is a backend's
	unsized bool // the client's request went on as one for the head only
	headed  bool
	whole   bool      // the answer was completed
	sized   bool      // list is whole
	charset string    // of X-Accel-Charset
	extra   fieldList // to be added to the next head
}

// fieldRoom is memory for the fields of an answer's head. A request takes it when there is a head, which is after it has
// waited, and so has what another one gave back just before: that is nearer than memory of its own would be.
type fieldRoom struct{ fields fieldList }

// usualFields is room for the fields of most heads.
const usualFields = 24

var fieldRooms = sync.Pool{New: func() any { return &fieldRoom{make(fieldList, 0, usualFields)} }}

// begin readies the state for a request.
func (s *sentState) begin(r *request) {
	extra := emptied(s.extra)
	*s = sentState{}
	s.r, s.extra = r, extra
}

// empty is the memory for a head.
func (s *sentState) empty() fieldList {
	if s.room == nil {
		s.room = fieldRooms.Get().(*fieldRoom)
	}
	return s.room.fields
}

// release gives back what was taken for an answer.
func (s *sentState) release() {
	s.releaseSqueezer()
	if s.room == nil {
		return
	}
	if len(s.list) < len(s.passed) {
		s.list = s.passed
	}
	if s.room.fields = emptied(s.list); s.room.fields == nil {
		s.room.fields = make(fieldList, 0, usualFields)
	}
	fieldRooms.Put(s.room)
	s.room, s.list, s.passed = nil, nil, nil
}

func (s *sentState) releaseSqueezer() {
	if s.squeeze != nil { // by the settings in force
		squeezers[s.r.conf.answer.gzip.level].Put(s.squeeze)
		s.squeeze = nil
	}
}

// Inform is forward.Client's. What an informational answer says is hidden as in the one that follows.
func (s *sentState) Inform(status int, fields []forward.Field) error {
	p := s.r.conf.way()
	kept := fields[:0]
	for _, f := range fields {
		if !p.hidden.has(f.Name) {
			kept = append(kept, f)
		}
	}
	return s.r.client.Inform(status, kept)
}

// Head is forward.Client's: nginx's header filters, in their order.
func (s *sentState) Head(status int, fields []forward.Field, length int64) error {
	r := s.r
	s.headed = true
	if status == 101 || status == forward.Headless {
		r.status = status
		s.list, s.sized = append(s.empty(), fields...), true
		return r.client.Head(status, fields, length)
	}
	r.status = r.finalStatus(status)
	if s.proxied && s.unsized {
		length = -1 // proxy_method made it so: the length is of a body that is not there
	}
	s.fill(fields)
	ours := !s.proxied // a backend's fields have no Connection among them
	if len(s.extra) > 0 {
		s.addKept()
		ours = true
	}
	if length < 0 {
		s.list.drop("Content-Length")
	}
	if r.status == 204 {
		s.list.drop("Content-Type")
		s.list.drop("Content-Length")
		length = 0
	}
	if a := &r.conf.answer; a.changes() || s.charset != "" {
		length = s.change(a, length)
		ours = true
	}
	if !ours || s.list.index("Connection") < 0 {
		r.connection(&s.list, length)
	}
	s.length, s.sized = length, true
	return r.client.Head(r.status, s.list, length)
}

// ownFields are the places before the fields that a backend's head passes on, for those of ours.
const ownFields = 2

// fill begins the list with Server and Date, unless the fields have such, and the fields.
func (s *sentState) fill(fields fieldList) {
	if s.proxied && sameMemory(fields, s.passed[ownFields:]) {
		s.list = s.passed
	} else {
		s.list = append(append(s.empty(), placeholders[:]...), fields...)
	}
	server, date := &s.list[0], &s.list[1]
	server.Name, server.Value = nameServer, valueServer
	date.Name, date.Value = nameDate, dateOf(s.r.moment())
	fields = s.list[ownFields:]
	if fields.index("Server") >= 0 || fields.index("Date") >= 0 {
		s.list = append(s.list[:0], s.withoutOwn(fields)...)
	}
	if !s.proxied {
		s.list.toLines()
	}
}

// toLines sees to values of ours, which may hold text of the client.
func (l fieldList) toLines() {
	for i := range l {
		l[i].Value = singleLineBytes(l[i].Value)
	}
}

// withoutOwn closes the gap where a backend's Server or Date goes on in place of ours.
func (s *sentState) withoutOwn(fields fieldList) fieldList {
	if fields.index("Server") < 0 {
		return append(s.list[:1], fields...)
	}
	if fields.index("Date") < 0 {
		return s.list[1:]
	}
	return fields
}

// sameMemory tells whether two lists are one.
func sameMemory(a, b []forward.Field) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// change carries out what the configuration says of heads, and gives the length of the body that follows.
func (s *sentState) change(a *answerSettings, length int64) int64 {
	r := s.r
	r.expire(&s.list, r.status)
	r.addHeaders(&s.list, r.status)
	r.addCharset(&s.list)
	if r.compresses(&s.list, r.status, length) {
		if length = -1; !r.headOnly() {
			s.squeeze = squeezer(a.gzip.level, (*gzipped)(s))
		}
	}
	if length < 0 && a.unchunked && !r.headOnly() {
		s.list.add("Transfer-Encoding", []byte("identity"))
		s.list = append(s.list, forward.Field{Name: nameConnection, Value: valueClose})
	}
	return length
}

// addKept adds what an answer that is not given left for the one that is. A Content-Type goes before that of a text of
// the configuration, and behind that of a backend or of a page that says a status.
func (s *sentState) addKept() {
	for _, f := range s.extra {
		if sameName(f.Name, "Content-Type") {
			if (s.proxied || s.r.errStatus != 0) && s.list.index("Content-Type") >= 0 {
				continue
			}
			s.list.drop("Content-Type")
		}
		s.list = append(s.list, f)
	}
	s.extra = s.extra[:0]
}

// headSize is about what the engine writes of a head: a status line, and the fields.
func (s *sentState) headSize() int64 {
	if !s.sized {
		return 0
	}
	n := int64(len("HTTP/1.1 200 OK\r\n\r\n"))
	for i := range s.list {
		n += int64(len(s.list[i].Name) + len(s.list[i].Value) + len(": \r\n"))
	}
	return n
}

// Write is forward.Client's. What is compressed goes out at once, too: nginx would gather it.
func (s *sentState) Write(b []byte) error {
	if s.r.headOnly() {
		return nil
	}
	if s.squeeze == nil {
		return s.put(b)
	}
	if _, err := s.squeeze.Write(b); err != nil {
		return err
	}
	return s.squeeze.Flush()
}

func (s *sentState) put(b []byte) error {
	if s.length >= 0 && s.bytes+int64(len(b)) >= s.length {
		s.r.leave()
	}
	if err := s.r.client.Write(b); err != nil {
		return err
	}
	s.bytes += int64(len(b))
	return nil
}

// gzipped takes the compressor's output.
type gzipped sentState

func (g *gzipped) Write(b []byte) (int, error) {
	if err := (*sentState)(g).put(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// End is forward.Client's.
func (s *sentState) End(trailer []forward.Field) error {
	if s.squeeze != nil {
		if err := s.squeeze.Close(); err != nil {
			return err
		}
		s.releaseSqueezer()
	}
	s.r.leave()
	err := s.r.client.End(trailer)
	s.whole = err == nil
	return err
}

// Finish is forward.Finisher's.
func (s *sentState) Finish(last []byte, trailer []forward.Field) error {
	to, ok := s.r.client.(forward.Finisher)
	if !ok || s.squeeze != nil {
		if len(last) > 0 {
			if err := s.Write(last); err != nil {
				return err
			}
		}
		return s.End(trailer)
	}
	if s.r.headOnly() {
		last = nil
	}
	s.r.leave()
	err := to.Finish(last, trailer)
	if s.whole = err == nil; s.whole {
		s.bytes += int64(len(last))
	}
	return err
}

// Socket is forward.Splicer's: what is not compressed here need not pass through here.
func (s *sentState) Socket() (*net.TCPConn, bool) {
	to, ok := s.r.client.(forward.Splicer)
	if !ok || s.squeeze != nil || s.r.headOnly() {
		return nil, false
	}
	return to.Socket()
}

// Sent is forward.Splicer's.
func (s *sentState) Sent(n int64, err error) error {
	s.bytes += n
	return s.r.client.(forward.Splicer).Sent(n, err)
}

// Cork is forward.Corker's.
func (s *sentState) Cork() {
	if c, ok := s.r.client.(forward.Corker); ok {
		c.Cork()
	}
}

// Abort is forward.Client's.
func (s *sentState) Abort() { s.r.client.Abort() }

// Tunnel is forward.Client's. Its bytes to the client count as body.
func (s *sentState) Tunnel() (io.ReadWriteCloser, error) {
	rw, err := s.r.client.Tunnel()
	if errors.Is(err, forward.ErrNoTunnel) {
		s.headed, s.sized = false, false // another answer follows
	}
	if err != nil {
		return nil, err
	}
	s.whole = true
	return &countedTunnel{rw, s}, nil
}

type countedTunnel struct {
	io.ReadWriteCloser
	s *sentState
}

func (t *countedTunnel) Write(b []byte) (int, error) {
	n, err := t.ReadWriteCloser.Write(b)
	t.s.bytes += int64(n)
	return n, err
}

// CloseWrite ends the direction to the client.
func (t *countedTunnel) CloseWrite() error {
	if c, ok := t.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
