package front

import "errors"

// tunnel is a client's connection after 101. Bytes either way keep it from being idle.
type tunnel struct {
	c     *conn
	early []byte // what the client sent behind its request
}

// Read is io.Reader's.
func (t *tunnel) Read(p []byte) (int, error) {
	if len(t.early) > 0 {
		n := copy(p, t.early)
		t.early = t.early[n:]
		return n, nil
	}
	if !t.c.enter(tunnelling) {
		return 0, errLate
	}
	return t.c.read(p, nil)
}

// Write is io.Writer's.
func (t *tunnel) Write(p []byte) (int, error) {
	if !t.c.enter(tunnelling) {
		return 0, errLate
	}
	if err := t.c.put(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close is io.Closer's. It ends a Read and a Write that are under way; the connection's own goroutine closes it.
func (t *tunnel) Close() error {
	c := t.c
	c.stamp.Store(dead)
	_ = c.base.SetReadDeadline(longAgo)
	if c.sending.Load() != 0 {
		_ = c.base.SetWriteDeadline(longAgo)
	}
	return nil
}

// CloseWrite ends the direction to the client.
func (t *tunnel) CloseWrite() error {
	err := closeWrite(t.c.nc)
	if t.c.sealed != nil { // TLS has said goodbye; the socket has not
		err = errors.Join(err, t.c.sealed.CloseWrite())
	}
	return err
}
