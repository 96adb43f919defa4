package site

import (
	"compress/gzip"
	"errors"
	"io"
	"net"

	"github.com/upstrand/upstrand/proxy/forward"
)

// sentState is the way of an answer to the client: every answer, whoever made it, goes through it. It is the client that
// an exchange sees, and changes head and body as the configuration says on the way to the real one.
type sentState struct {
	r       *request
	list    fieldList // the head as it went out
	extra   fieldList // to be added to the next head
	charset string    // of X-Accel-Charset
	proxied bool      // the answer is a backend's
	headed  bool
	whole   bool  // the answer was completed
	head    int64 // bytes of the head, about
	bytes   int64 // of the body, as sent
	length  int64 // of the body, as announced; -1: unknown
	squeeze *gzip.Writer
}

// begin readies the state for an answer of that request.
func (s *sentState) begin(r *request) { s.r, s.proxied = r, false }

func (s *sentState) reset() {
	s.release()
	*s = sentState{list: emptied(s.list), extra: emptied(s.extra)}
}

func (s *sentState) release() {
	if s.squeeze != nil {
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
		s.list = append(s.list[:0], fields...)
		s.countHead()
		return r.client.Head(status, fields, length)
	}
	r.status = r.finalStatus(status)
	if s.proxied && string(r.up.out.Method) == "HEAD" && string(r.in.Method) != "HEAD" {
		length = -1 // proxy_method made it so: the length is of a body that is not there
	}
	s.list = s.list[:0]
	if fieldList(fields).index("Server") < 0 {
		s.list = append(s.list, forward.Field{Name: nameServer, Value: valueServer})
	}
	if fieldList(fields).index("Date") < 0 {
		s.list = append(s.list, forward.Field{Name: nameDate, Value: dateOf(r.moment())})
	}
	s.list = append(s.list, fields...)
	if !s.proxied { // values of ours may hold text of the client
		for i := range s.list {
			s.list[i].Value = singleLineBytes(s.list[i].Value)
		}
	}
	s.addKept()
	if length < 0 {
		s.list.drop("Content-Length")
	}
	if r.status == 204 {
		s.list.drop("Content-Type")
		s.list.drop("Content-Length")
		length = 0
	}
	r.expire(&s.list, r.status)
	r.addHeaders(&s.list, r.status)
	r.addCharset(&s.list)
	if r.compresses(&s.list, r.status, length) {
		if length = -1; !r.headOnly() {
			s.squeeze = squeezer(r.conf.answer.gzip.level, (*gzipped)(s))
		}
	}
	if length < 0 && r.conf.answer.unchunked && !r.headOnly() {
		s.list.add("Transfer-Encoding", []byte("identity"))
		s.list = append(s.list, forward.Field{Name: nameConnection, Value: valueClose})
	}
	if s.list.index("Connection") < 0 {
		r.connection(&s.list, length)
	}
	s.countHead()
	s.length = length
	return r.client.Head(r.status, s.list, length)
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

// countHead is about what the engine writes: a status line, and the fields.
func (s *sentState) countHead() {
	s.head = int64(len("HTTP/1.1 200 OK\r\n\r\n"))
	for i := range s.list {
		s.head += int64(len(s.list[i].Name) + len(s.list[i].Value) + len(": \r\n"))
	}
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
		s.r.limits.leave()
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
		s.release()
	}
	s.r.limits.leave()
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
	s.r.limits.leave()
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
		s.headed, s.head = false, 0 // another answer follows
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
