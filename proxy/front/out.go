package front

import "sync"

// out is what a connection is writing, unless it is one piece that is taken at once. One goroutine writes at a time.
type out struct {
	pieces   [3][]byte // in this order; what was written is cut off
	writable func(uintptr) bool
}

// left drops pieces that were written, and reports whether something is left.
func (o *out) left(n int) bool {
	for i := range o.pieces {
		p := o.pieces[i]
		if n < len(p) {
			o.pieces[i] = p[n:]
			return true
		}
		n -= len(p)
		o.pieces[i] = nil
	}
	return false
}

// put writes one piece. It waits as long as the client takes some of it now and then.
func (c *conn) put(b []byte) error {
	if c.broken != nil || len(b) == 0 {
		return c.broken
	}
	if c.spliced.Load() {
		c.unsplice()
	}
	if c.fd != noFD && c.direct {
		if b = c.putNow(b); len(b) == 0 {
			return c.broken
		}
	}
	c.out.pieces = [3][]byte{b}
	return c.putPieces()
}

// putAll is put of up to three pieces, in one call of the system if the client takes them.
func (c *conn) putAll(a, b, d []byte) error {
	if c.broken != nil || len(a)+len(b)+len(d) == 0 {
		return c.broken
	}
	if c.spliced.Load() {
		c.unsplice()
	}
	c.out.pieces = [3][]byte{a, b, d}
	return c.putPieces()
}

// putPieces writes the pieces of out.
func (c *conn) putPieces() error {
	if c.fd == noFD || !c.direct || !c.onWritable(c.fd) {
		c.putSlowly()
	}
	if c.broken != nil {
		c.out.pieces = [3][]byte{}
	}
	return c.broken
}

// putSlowly writes what is left, and waits for the client.
func (c *conn) putSlowly() {
	c.waits = true
	c.pace()
	var err error
	switch {
	case c.direct && waitFirst:
		err = c.raw.Write(c.out.writable)
	default:
		err = c.putRecords()
	}
	if c.broken == nil {
		c.broken = err
	}
	c.waits = false
	c.sending.Store(0)
}

// unsplice is for when nobody else writes to the socket any more.
func (c *conn) unsplice() {
	c.spliced.Store(false)
	c.sending.Store(0)
}

// pace notes that the client took something.
func (c *conn) pace() { c.sending.Store(c.srv.now.Load()) }

// recordSize is that of TLS's records, as far as there is so much to write.
const recordSize = 16 << 10

var records = sync.Pool{New: func() any { return new([recordSize]byte) }}

// putRecords writes by ordinary calls: small pieces go together, so that they become one record of TLS.
func (c *conn) putRecords() error {
	o := &c.out
	total := len(o.pieces[0]) + len(o.pieces[1]) + len(o.pieces[2])
	if total == len(o.pieces[0]) || total == len(o.pieces[1]) {
		for _, p := range o.pieces {
			if err := c.whole(p); err != nil {
				return err
			}
		}
		return nil
	}
	buf := records.Get().(*[recordSize]byte)
	defer records.Put(buf)
	n := 0
	for _, p := range o.pieces {
		for len(p) > 0 {
			m := copy(buf[n:], p)
			p = p[m:]
			if n += m; n == recordSize {
				if err := c.whole(buf[:n]); err != nil {
					return err
				}
				n = 0
			}
		}
	}
	return c.whole(buf[:n])
}

func (c *conn) whole(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	c.pace()
	_, err := c.nc.Write(p)
	return err
}
