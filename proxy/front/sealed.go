package front

import "net"

// sealed is what TLS reads from and writes to. Within a callback of the socket's read it never waits: it gives errAgain, which
// does not break TLS, since it says that it is temporary.
type sealed struct {
	net.Conn
	c     *conn
	early []byte // what was read before the handshake
	seen  recordCount
	short bool // the last read took all there was
}

// errAgain is that nothing is there yet.
var errAgain net.Error = again{}

type again struct{}

func (again) Error() string   { return "nothing is there yet" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }

// Read is net.Conn's.
func (s *sealed) Read(p []byte) (n int, err error) {
	switch {
	case len(s.early) > 0:
		n = copy(p, s.early)
		s.early = s.early[n:]
	case s.c.fd != noFD:
		n, err = s.readNow(p)
	default:
		n, err = s.Conn.Read(p)
	}
	s.short = n < len(p)
	s.seen.pass(p[:n])
	return n, err
}

// Write is net.Conn's. What the client takes of a record is noted as it does.
func (s *sealed) Write(b []byte) (int, error) {
	const piece = 16 << 10
	done := 0
	if s.c.fd != noFD {
		done = s.writeNow(b)
	}
	for done < len(b) {
		if s.c.sending.Load() != 0 {
			s.c.pace()
		}
		n, err := s.Conn.Write(b[done:min(len(b), done+piece)])
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// CloseWrite ends the direction to the client.
func (s *sealed) CloseWrite() error { return closeWrite(s.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// recordCount follows the records of TLS (RFC 8446, 5.1) as they pass, to know whether something is left of what was read.
type recordCount struct {
	head [5]byte
	have int // bytes of head
	left int // bytes of the record behind it
	done int // records that came to their end
}

func (r *recordCount) pass(b []byte) {
	for len(b) > 0 {
		if r.left == 0 {
			n := copy(r.head[r.have:], b)
			r.have, b = r.have+n, b[n:]
			if r.have < len(r.head) {
				return
			}
			r.have, r.left = 0, int(r.head[3])<<8|int(r.head[4])
			if r.left == 0 {
				r.done++
			}
			continue
		}
		n := min(r.left, len(b))
		b = b[n:]
		if r.left -= n; r.left == 0 {
			r.done++
		}
	}
}

// single tells that one record ended, and that nothing of another one has come.
func (r *recordCount) single() bool { return r.done == 1 && r.left == 0 && r.have == 0 }
